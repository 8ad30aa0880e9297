/**
 * The accounts of the portal: events of the topic `accounts`, and the ledger that the projector writes from them. Any number of
 * portals use them at once. If two change the same account, the later change stays.
 *
 * Promises:
 * - A deleted account stays deleted, whatever was written before and lands late. A sign-up and a deletion begin a new life of
 *   the account, and the life is the high part of each version. So no clock has to be right.
 * - Sessions that were ended stay ended: within a life, `sessions_valid_from` is the version.
 *
 * A compacted topic keeps the record of a key that was appended last. If that is one that landed late, a replay into new tables
 * would bring it back. So whatever wrote it sees the newer state in the ledger, and appends that once more. If its process was
 * killed, the deletion itself is appended a second time, when nothing that was under way can land any more (`settledMs`). Of the
 * two, the second has a version that is higher by one.
 *
 * A deletion has two steps. After `delete` the account does not exist, and its sessions have ended with it. Then its keys are deleted, with
 * the names and contact addresses that they carry. It may be interrupted: its process was killed, the log or the tables were away, or
 * something was written meanwhile and landed later. So every portal looks for what is left (`finishDeletions`). Several may complete the
 * same one: each step can be done again.
 */
import { type AccountState, lifeOf, partOf, versionIn } from '../../../contracts/events/portal-event.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { readSql } from '../../tables/sql-text.ts'
import { PageError } from '../http/pages.ts'
import type { PortalKeys } from '../keys/portal-keys.ts'
import { type OwnEventsDependencies, writeOwn } from '../own-events.ts'
import type { Account } from '../ports.ts'
import { type Place, readRows } from '../reading.ts'
import { accountIdOf } from './email.ts'

export interface AccountsDependencies extends OwnEventsDependencies, Place, Pick<Runtime, 'now'> {
  /** PLEDGEVIEW_PORTAL_KEY. */
  portalKey: string
  /** How long after a deletion it is appended a second time, ms. Default 10 minutes: no request to the log takes so long. */
  settledMs?: number
}

const settledMsDefault = 600_000
const signUpTriesMax = 3

/** What a call has written, every later call sees, in every portal. */
export type Accounts = ReturnType<typeof openAccounts>

export function openAccounts(dependencies: AccountsDependencies) {
  const { portalKey, now, settledMs = settledMsDefault } = dependencies
  const find = async (accountId: string) => liveAccount(await readAccount(dependencies, accountId))
  return {
    /** The account with this id, as the ledger has it now. */
    find: find as (accountId: string) => Promise<Account | undefined>,

    /** The account of a verified e-mail address in its normal form (email.ts). Creates it if there is none. */
    async ofVerifiedEmail(email: string): Promise<Account> {
      const account_id = accountIdOf(portalKey, email)
      let held = await readAccount(dependencies, account_id)
      for (let tries = 0; tries < signUpTriesMax && !liveAccount(held); tries++) {
        // What is left of the life before must not become a part of the new one.
        if (held && (await hasKeys(dependencies, account_id))) throw beingDeleted()
        const at = now()
        const version = versionIn(lifeOf(held?.version ?? 0n) + 1n, at)
        // Another portal may have made it, too. Then the state with the higher version counts, everywhere, and ends a session that
        // began with the other one: that person signs in again.
        const times = { created_at: at, sessions_valid_from: at, changed_at: at }
        held = await write(dependencies, { account_id, email, ...times, version })
      }
      const account = liveAccount(held)
      if (!account) throw beingDeleted()
      return account
    },

    /** Ends every session that began before now. An account that does not exist any more has none. */
    async endSessions(accountId: string): Promise<void> {
      const account = await find(accountId)
      // Its sessions ended with it. So they do if it is deleted from here on.
      if (!account) return
      // The clock of the portal that wrote it last may be ahead. Its sessions have to end too.
      const part = Math.max(now(), account.sessions_valid_from + 1, partOf(account.version) + 1)
      const version = versionIn(lifeOf(account.version), part)
      await write(dependencies, { ...account, sessions_valid_from: part, changed_at: now(), version })
    },

    /** Deletes the account: from now on it does not exist. Its keys have to be deleted after it. */
    async delete(account_id: string): Promise<void> {
      const account = await find(account_id)
      if (!account) return
      const times = { created_at: 0, sessions_valid_from: 0, changed_at: now() }
      const version = versionIn(lifeOf(account.version) + 1n, 0)
      await write(dependencies, { account_id, email: '', ...times, version })
    },

    /** The accounts of which something is left after a deletion, or whose deletion has to be appended again. */
    unfinished: () => readUnfinished(dependencies, settledMs),

    /** Appends a deletion again if its time has come. */
    async finishDeletion(accountId: string): Promise<void> {
      const account = await readAccount(dependencies, accountId)
      // A deletion that was appended once has the part 0.
      const isDue = account?.email === '' && partOf(account.version) === 0 && account.age_ms >= settledMs
      if (!isDue || (await hasKeys(dependencies, accountId))) return
      await write(dependencies, { ...account, version: account.version + 1n })
    },
  }
}

/**
 * Appends a state, and resolves with the account once the ledger has it, or a newer one. If it has a newer one, this state came late. Then
 * the newer one is appended again, so that it is the last one in the log. That may be late, too, so it counts only once the ledger has it
 * anew. `before`: when the ledger had the state that is appended again.
 */
async function write(dependencies: AccountsDependencies, data: State, before = 0): Promise<LedgerRow> {
  const { account_id, version } = data
  const held = await writeOwn(dependencies, [{ type: 'account', data }], async () => {
    const row = await readAccount(dependencies, account_id)
    const isThere = row && row.version >= version && !(row.version === version && row.came_at === before)
    return isThere ? row : undefined
  })
  return held.version > version ? write(dependencies, held, held.came_at) : held
}

export function beingDeleted(): PageError {
  const text = 'This account is being deleted. In a minute you can sign in to a new one.'
  return new PageError(503, text, { retryAfterSeconds: 60 })
}

export interface DeletionPorts {
  accounts: Pick<Accounts, 'find' | 'unfinished' | 'finishDeletion'>
  keys: Pick<PortalKeys, 'deleteAll'>
}

/** One round: completes what is left of deletions. One that fails is reported, and does not keep the others from their turn. */
export async function finishDeletions(
  { accounts, keys }: DeletionPorts,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  async function finish(accountId: string): Promise<void> {
    // The person may have signed up again. The keys are those of the new account then.
    if (!(await accounts.find(accountId))) await keys.deleteAll(accountId)
    await accounts.finishDeletion(accountId)
  }

  for (const accountId of await accounts.unfinished()) {
    if (signal.aborted) return
    await finish(accountId).catch(onError)
  }
}

/* What the ledger has. */

type State = AccountState & { version: bigint }

/** The state of an account, deleted if it has no address, and since when and for how long the ledger has had it by ClickHouse's clock. */
type LedgerRow = State & { came_at: number; age_ms: number }

const accountSql = readSql('account', import.meta.url)
const unfinishedSql = readSql('unfinished', import.meta.url)
const unfinishedMsMax = 60_000

/** The account, whether it is deleted or not. */
export async function readAccount(place: Place, account_id: string): Promise<LedgerRow | undefined> {
  type Row = Omit<LedgerRow, 'version'> & { version: string }
  const [row] = await readRows<Row>(place, accountSql, { account_id })
  return row && { ...row, version: BigInt(row.version) }
}

/** The accounts of which something is left that has to go. */
export async function readUnfinished(place: Place, settled_ms: number): Promise<string[]> {
  const query_params = { life: String(versionIn(1n, 0)), settled_ms }
  const rows = await readRows<{ account_id: string }>(place, unfinishedSql, query_params, unfinishedMsMax)
  return rows.map(({ account_id }) => account_id)
}

/** Whether the ledger has keys of the account that are not deleted. */
async function hasKeys(place: Place, account_id: string): Promise<boolean> {
  const keysSql = `SELECT 1 FROM ${place.databases.base}.api_key_ledger FINAL WHERE account_id = {account_id:String} LIMIT 1`
  return (await readRows(place, keysSql, { account_id })).length > 0
}

/** The account, unless it is deleted. */
function liveAccount(row: LedgerRow | undefined): (Account & State) | undefined {
  if (!row || row.email === '') return undefined
  const { came_at, age_ms, ...account } = row
  return account
}
