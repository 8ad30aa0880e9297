/**
 * The notices: events of the topic `notices`, and the ledger that the projector writes from them. A notice that is settled (sent
 * or given up) stays so, whatever lands late, and of two states that wait, the one with more attempts counts.
 */
import { type NoticeState, portalVersionOf } from '../../../contracts/events/portal-event.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { type OwnEventsDependencies, recordOf, writeOwn } from '../own-events.ts'
import type { Mailer } from '../ports.ts'
import type { PortalStore } from '../store/port.ts'

/** A notice as the ledger has it. */
export type Notice = Omit<NoticeState, 'sender'>

/** A notice that has to be tidied: its mail is not sent any more (`gone`), or nobody needs it (`over`). */
export type Untidy = Pick<Notice, 'notice_id' | 'rule' | 'account_id' | 'attempts' | 'created_at'> & {
  work: 'gone' | 'over'
}

export type Notices = ReturnType<typeof openNotices>

/** Unix milliseconds: older than that is untidy. */
export interface UntidySince {
  waits_since: number
  settled_since: number
  announced_since: number
}

/** What the rules, the sender and the announcements work with. Each takes its part. */
export interface NoticeParts extends Pick<Runtime, 'now' | 'monotonicMs' | 'logger'> {
  notices: Notices
  store: PortalStore
  mailer: Pick<Mailer, 'send'>
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** The public address of the portal. */
  portalUrl: string
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
}

const sql = {
  notices: readSql('notices', import.meta.url),
  waiting: readSql('waiting', import.meta.url),
  untidy: readSql('untidy', import.meta.url),
}
const readMsMax = 12_000
const untidyMsMax = 35_000

export function openNotices(dependencies: OwnEventsDependencies & Pick<NoticeParts, 'tables' | 'databases'>) {
  const { writer, tables, databases } = dependencies
  const read = <R>(query: string, query_params: Statement['query_params'] = {}, msMax = readMsMax) =>
    tables.rows<R>(
      { query: nameDatabases(query, databases), query_params },
      { signal: AbortSignal.timeout(msMax) },
    )
  const ofIds = (ids: readonly string[]) => read<Notice>(sql.notices, { ids: [...ids] })

  return {
    get: async (id: string): Promise<Notice | undefined> => (await ofIds([id]))[0],

    /** Those of these ids that are there. At most a thousand. */
    ofIds,

    /** Those whose mail waits since then, the oldest first. */
    waiting: (since: number, rowsMax: number) => read<Notice>(sql.waiting, { since, rows_max: rowsMax }),

    /** Ids that end with this text. */
    async endingWith(suffix: string, rowsMax: number): Promise<string[]> {
      const rows = await read<{ notice_id: string }>(
        `SELECT notice_id FROM \${model}.notice_ledger FINAL WHERE endsWith(notice_id, {suffix:String}) AND rule != ''
         LIMIT {rows_max:UInt32}`,
        { suffix, rows_max: rowsMax },
      )
      return rows.map(({ notice_id }) => notice_id)
    },

    untidy: (since: UntidySince, rowsMax: number) =>
      read<Untidy>(sql.untidy, { ...since, rows_max: rowsMax }, untidyMsMax),

    /** Appends in order. Resolves when the states are durable; the ledger has them a moment later. */
    append: (states: readonly Notice[]) => writer.append(states.map(state => recordOf(eventOf(state)))),

    /** As `append`, but resolves when the ledger has them, or newer ones. */
    async write(states: readonly Notice[]): Promise<void> {
      await writeOwn(dependencies, states.map(eventOf), async () => {
        const held = await ofIds(states.map(({ notice_id }) => notice_id))
        return states.every(state => held.some(other => isUpTo(other, state))) || undefined
      })
    },

    /** Removes what is not needed any more. */
    remove: (ids: readonly string[]) =>
      writer.append(ids.map(id => ({ topic: 'notices' as const, key: Buffer.from(id), value: null }))),
  }
}

/** Whether a notice is done: no process sends it any more. */
export function isSettled({ status }: Pick<Notice, 'status'>): boolean {
  return status === 'SENT' || status === 'GIVEN_UP'
}

function isUpTo(held: Notice, state: Notice): boolean {
  return held.notice_id === state.notice_id && versionOf(held) >= versionOf(state)
}

function versionOf(state: Notice): bigint {
  return portalVersionOf(eventOf(state))
}

function eventOf(state: Notice) {
  return { type: 'notice' as const, data: { ...state, sender: null } }
}
