/**
 * What accounts promise while several portals use them at once. A deleted account stays deleted, and nothing of it is left, whatever
 * was under way and lands late: in the ledger, and in new tables that read a compacted log again.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { KeyRecord } from '../../../../services/api-keys/api-keys.ts'
import type { EventWriter } from '../../../../services/log/port.ts'
import {
  type Accounts,
  type AccountsDependencies,
  type DeletionPorts,
  finishDeletions,
  openAccounts,
  readAccount,
} from '../../../../services/portal/account/accounts.ts'
import { checkEmail } from '../../../../services/portal/account/email.ts'
import { createPortalKeys, type PortalKeys } from '../../../../services/portal/keys/portal-keys.ts'
import { PortalUnavailable } from '../../../../services/portal/own-events.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import { type Databases, TablesError } from '../../../../services/tables/port.ts'
import { apiKeyEvent, newRecordOf } from '../../../support/events/sample-events.ts'
import {
  compacted,
  type ProjectedLog,
  projectedJournal,
  replay,
} from '../../../support/portal/projected-log.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'
import { whileTime } from '../../../support/runner/while-time.ts'

const portalKey = 'ab'.repeat(32)
const time = { monotonicMs: () => performance.now(), sleep }
const model = useModelTables()
let log: ProjectedLog
let writers: [EventWriter, EventWriter]
let keys: PortalKeys
/** New tables, for a replay. */
let again: Databases
let email = ''

beforeAll(async () => {
  log = await projectedJournal(model)
  again = await model.freshDatabases()
  writers = [await log.openWriter(), await log.openWriter()]
  // Without a fold: each key that the ledger has.
  const query = `SELECT api_key AS key FROM ${log.databases.base}.api_key_ledger FINAL WHERE account_id = {id:String}`
  const ofAccount = (id: string) => log.tables.rows<KeyRecord>({ query, query_params: { id } })
  const directory = { find: async () => [], ofAccount }
  keys = createPortalKeys({ directory, writer: writers[0], pepper: '', now: Date.now, randomBytes, ...time })
})
afterAll(() => log?.close())
// Each test is about another person.
beforeEach(() => {
  email = newEmail()
})

describe('accounts', () => {
  let clock: number
  beforeEach(() => {
    clock = 1_790_000_000_000
  })
  const now = () => clock++
  const portals = () => [portal({ now }), portal({ now })] as const

  test('are one of sign-ups at once on two portals, however the address is written', async () => {
    const [one, two] = portals()
    const spellings = [email.toUpperCase(), `${email} `, email.replace('a', 'A'), email]
    const signedUp = await Promise.all(
      spellings.map((spelling, index) => {
        const checked = checkEmail(spelling) as { email: string }
        return (index % 2 === 0 ? one : two).ofVerifiedEmail(checked.email)
      }),
    )
    const [first] = signedUp
    expect(new Set(signedUp.map(({ account_id }) => account_id)).size).toBe(1)
    for (const accounts of [one, two, portal({ now })]) {
      const found = await accounts.ofVerifiedEmail(email)
      expect(found).toMatchObject({ account_id: first?.account_id, email })
      // Of the states that the portals wrote one counts, with its sessions: a person with a session of another one signs in again.
      expect(signedUp).toContainEqual(found)
      expect(found.sessions_valid_from).toBe(found.created_at)
    }
  })

  test('end their sessions everywhere at once, also if a portal whose clock is ahead has written before', async () => {
    const [one, two] = portals()
    const { account_id } = await one.ofVerifiedEmail(email)
    clock += 600_000
    await one.endSessions(account_id)
    clock -= 600_000
    const ahead = (await one.find(account_id))?.sessions_valid_from ?? 0
    await two.endSessions(account_id)
    expect((await two.find(account_id))?.sessions_valid_from).toBe(ahead + 1)
  })

  test('say within a bounded time that the log does not take a change', async () => {
    const { account_id } = await portal({ now }).ofVerifiedEmail(email)
    const never = Promise.withResolvers<never>()
    const hung = portal({ now, writer: { append: () => never.promise }, writeMsMax: 50 })
    await expect(hung.endSessions(account_id)).rejects.toThrow(PortalUnavailable)
    // Reading needs no log.
    expect(await hung.find(account_id)).toMatchObject({ email })
  })

  test('say so of a change that the log has, also if the tables hang after it', async () => {
    const { account_id } = await portal({ now }).ofVerifiedEmail(email)
    let hasAppended = false
    const { append } = writers[0]
    const writer = {
      append: (...args: Parameters<typeof append>) => append(...args).finally(() => (hasAppended = true)),
    }
    const { rows } = log.tables
    const hanging = ((...args: Parameters<typeof rows>) =>
      hasAppended
        ? Promise.reject(new TablesError('abandoned', { retryable: false }))
        : rows(...args)) as typeof rows
    const late = portal({ now, writer, tables: { ...log.tables, rows: hanging }, writeMsMax: 1_000 })
    await expect(late.delete(account_id)).rejects.toThrow(PortalUnavailable)
  })
})

/** A sign-out everywhere that is under way. */
interface Late {
  /** How far the clock of the portal is ahead, ms. */
  aheadMs: number
  /** The portal is killed after it has sent the change. */
  isKilled: boolean
}

const late: fc.Arbitrary<Late> = fc.record({
  aheadMs: fc.constantFrom(-3_600_000, 0, 3_600_000),
  isKilled: fc.boolean(),
})

describe('the deletion of an account', () => {
  const opened: (() => void)[] = []
  afterEach(() => {
    for (const open of opened.splice(0)) open()
  })

  const eager = ({ aheadMs = 0, ...changes }: Partial<AccountsDependencies> & { aheadMs?: number } = {}) =>
    portal({ now: () => Date.now() + aheadMs, settledMs: 0, writeMsMax: 60_000, ...changes })

  /** A writer whose appends wait until `release`. A killed one has no process that looks afterwards. */
  function slow(isKilled: boolean) {
    const gate = Promise.withResolvers<void>()
    const arrived = Promise.withResolvers<void>()
    opened.push(gate.resolve)
    const landed = Promise.withResolvers<void>()
    const writer: Pick<EventWriter, 'append'> = {
      async append(records) {
        arrived.resolve()
        await gate.promise
        await writers[1].append(records)
        landed.resolve()
        if (isKilled) await new Promise(() => undefined)
      },
    }
    return { writer, arrived: arrived.promise, landed: landed.promise, release: gate.resolve }
  }

  /** One round of a portal: what it reported. */
  async function finish(accounts: DeletionPorts['accounts']): Promise<unknown[]> {
    const errors: unknown[] = []
    await finishDeletions({ accounts, keys }, new AbortController().signal, error => errors.push(error))
    return errors
  }

  /** Finishes deletions until nothing is left to do, as the portals do every half a minute. */
  async function finishAll(accounts: Accounts): Promise<void> {
    const round = async () => [...(await finish(accounts)), ...(await accounts.unfinished())]
    await expect.poll(round, { timeout: 20_000 }).toEqual([])
  }

  /** What tables have that read the log again after its compaction. */
  async function replayed(accountId: string) {
    const { tables } = log
    await tables.run({ query: `TRUNCATE TABLE ${again.base}.account_ledger` })
    await replay(tables, again, compacted(await log.records()))
    return readAccount({ tables, databases: again }, accountId)
  }

  const addressesOf = (row: Awaited<ReturnType<typeof readAccount>>) =>
    row && row.email !== '' ? [row.email] : []

  /** A key that the ledger has. */
  async function addKey(account_id: string): Promise<void> {
    const key = `pv_live_${randomUUID()}`
    await writers[0].append([newRecordOf(apiKeyEvent({ key, account_id }))])
    await expect.poll(() => keys.ofAccount(account_id)).toEqual([expect.objectContaining({ key })])
  }

  test('stays, in whatever order late writes land, whatever the clocks say, and whoever is killed; who signs up again has no session of before', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(late, { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.nat()),
        fc.boolean(),
        fc.boolean(),
        whileTime(90_000, async (lates, order, signsUpAgain, finishesEarly) => {
          const address = newEmail()
          const one = eager()
          const { account_id, created_at } = await one.ofVerifiedEmail(address)
          const under = await Promise.all(
            lates.map(async ({ aheadMs, isKilled }) => {
              const hung = slow(isKilled)
              const late = eager({ writer: hung.writer, aheadMs })
              const done = late.endSessions(account_id)
              await hung.arrived
              return { ...hung, isKilled, done: isKilled ? hung.landed : done }
            }),
          )
          await one.delete(account_id)
          await keys.deleteAll(account_id)
          // The old life's writes land in the new one, too.
          const second = signsUpAgain ? await one.ofVerifiedEmail(address) : undefined
          for (const index of order) {
            // A portal that lives also mends what lands after the deletion was appended again.
            if (finishesEarly && !under.some(({ isKilled }) => isKilled)) await finishAll(one)
            const [next] = under.splice(index % Math.max(1, under.length), 1)
            if (!next) break
            next.release()
            await next.done
          }
          // What was appended last has been projected when this has been.
          await one.ofVerifiedEmail(`marker-${randomUUID()}@example.com`)
          await finishAll(one)
          if (second) expect(second.sessions_valid_from).toBeGreaterThan(created_at)
          else await one.endSessions(account_id)
          expect(await one.find(account_id)).toEqual(second)
          const kept = second ? [address] : []
          expect(addressesOf(await readAccount(log, account_id))).toEqual(kept)
          if (!signsUpAgain) expect(addressesOf(await replayed(account_id))).toEqual([])
        }),
      ),
      { numRuns: 15 },
    )
  }, 180_000)

  test('stays in new tables, and so does the end of sessions, also if it lands while an older state is appended again', async () => {
    const one = eager()
    const { account_id } = await one.ofVerifiedEmail(email)
    const landed = Promise.withResolvers<void>()
    const append: EventWriter['append'] = records => writers[0].append(records).then(landed.resolve)
    const hung = slow(false)
    const ends: Promise<void>[] = []
    const late = eager({
      aheadMs: -3_600_000,
      writer: {
        async append(records) {
          // The late portal has read the state of `one`, which it is about to append again.
          if (ends.length === 1) {
            ends.push(eager({ writer: { append } }).endSessions(account_id))
            await landed.promise
          }
          await hung.writer.append(records)
        },
      },
    })
    const lateEnd = late.endSessions(account_id)
    await hung.arrived
    ends.push(one.endSessions(account_id))
    await ends[0]
    hung.release()
    await lateEnd
    await Promise.all(ends)
    const newest = await readAccount(log, account_id)
    expect(ends).toHaveLength(2)
    expect((await replayed(account_id))?.version).toBe(newest?.version)
  })

  test('is completed by another portal if its own is killed before the keys are deleted; until then nobody signs up again', async () => {
    const one = eager()
    const { account_id } = await one.ofVerifiedEmail(email)
    await addKey(account_id)
    await one.delete(account_id)
    // The account is gone from the first step on.
    expect(await one.find(account_id)).toBeUndefined()
    await expect(one.ofVerifiedEmail(email)).rejects.toThrow('is being deleted')
    await one.finishDeletion(account_id)
    expect(await one.unfinished()).toEqual([account_id])
    await finishAll(eager())
    expect(await keys.ofAccount(account_id)).toEqual([])
    expect(await one.ofVerifiedEmail(email)).toMatchObject({ account_id })
  })

  test('never deletes the keys of a person who has signed up again', async () => {
    const one = eager()
    const { account_id } = await one.ofVerifiedEmail(email)
    await addKey(account_id)
    expect(await finish({ ...one, unfinished: async () => [account_id] })).toEqual([])
    expect(await keys.ofAccount(account_id)).toHaveLength(1)
    expect(await one.find(account_id)).toMatchObject({ email })
  })

  test('one that fails is reported, and does not keep the others from their turn', async () => {
    const one = eager()
    const { account_id } = await one.ofVerifiedEmail(email)
    await one.delete(account_id)
    const unfinished = async () => ['failing', account_id]
    const find = (id: string) => (id === 'failing' ? Promise.reject(new Error('away')) : one.find(id))
    expect(await finish({ ...one, unfinished, find })).toEqual([new Error('away')])
    expect(await one.unfinished()).toEqual([])
  })
})

function portal(changes: Partial<AccountsDependencies>): Accounts {
  const { tables, databases } = log
  return openAccounts({
    writer: writers[0],
    tables,
    databases,
    portalKey,
    now: Date.now,
    ...time,
    ...changes,
  })
}

function newEmail(): string {
  return `ann-${randomUUID()}@example.com`
}
