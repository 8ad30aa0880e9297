/**
 * A deleted account stays deleted, and nothing of it is left, whatever was under way and lands late: in the ledger, and in new
 * tables that read a compacted log again. For every log that accounts may stand on.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EventWriter } from '../../../../services/log/port.ts'
import { readAccount } from '../../../../services/portal/account/account-ledger.ts'
import { openAccounts } from '../../../../services/portal/account/accounts.ts'
import { deleteAccount } from '../../../../services/portal/account/deletions.ts'
import type { Accounts } from '../../../../services/portal/ports.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import type { Databases } from '../../../../services/tables/port.ts'
import { compacted, type ProjectedLog, replay } from '../../../support/portal/projected-log.ts'
import type { ModelTables } from '../../../support/projector/model-tables.ts'
import { whileTime } from '../../../support/runner/while-time.ts'

const portalKey = 'ab'.repeat(32)
const noKeys = { deleteAll: async () => undefined }

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

export function describeDeletions(
  make: () => Promise<ProjectedLog>,
  { model, runs }: { model: () => ModelTables; runs: number },
): void {
  describe('the deletion of an account', () => {
    let log: ProjectedLog
    let writers: EventWriter[]
    let email = ''
    /** New tables, for a replay. */
    let again: Databases
    const opened: (() => void)[] = []

    afterAll(() => log?.close())
    beforeEach(async () => {
      // Not before all tests: a test that is skipped has no service to make it with.
      if (!log) {
        log = await make()
        again = await model().freshDatabases()
        writers = [await log.openWriter(), await log.openWriter()]
      }
      email = `ann-${randomUUID()}@example.com`
    })
    afterEach(() => {
      for (const open of opened.splice(0)) open()
    })

    function portal({
      writer = writers[0],
      aheadMs = 0,
    }: {
      writer?: Pick<EventWriter, 'append'>
      aheadMs?: number
    } = {}) {
      if (!writer) throw new Error('there is no writer')
      const { tables, databases } = log
      const time = { now: () => Date.now() + aheadMs, monotonicMs: () => performance.now(), sleep }
      return openAccounts({ writer, tables, databases, portalKey, ...time, settledMs: 0, writeMsMax: 60_000 })
    }

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
          await writers[1]?.append(records)
          landed.resolve()
          if (isKilled) await new Promise(() => undefined)
        },
      }
      return { writer, arrived: arrived.promise, landed: landed.promise, release: gate.resolve }
    }

    /** Finishes deletions until nothing is left to do, as the portals do every half a minute. */
    async function finishAll(accounts: Accounts): Promise<void> {
      await expect
        .poll(
          async () => {
            const unfinished = await accounts.unfinished()
            for (const id of unfinished) await accounts.finishDeletion(id)
            return unfinished
          },
          { timeout: 20_000 },
        )
        .toEqual([])
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

    test('stays, in whatever order late writes land, whatever the clocks say, and whoever is killed', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(late, { minLength: 1, maxLength: 4 }),
          fc.infiniteStream(fc.nat()),
          fc.boolean(),
          whileTime(90_000, async (lates, order, signsUpAgain) => {
            const address = `ann-${randomUUID()}@example.com`
            const one = await portal()
            const { account_id } = await one.ofVerifiedEmail(address)
            const under = await Promise.all(
              lates.map(async ({ aheadMs, isKilled }) => {
                const hung = slow(isKilled)
                const late = await portal({ writer: hung.writer, aheadMs })
                const done = late.endSessions(account_id).catch(() => undefined)
                await hung.arrived
                return { ...hung, done: isKilled ? hung.landed : done }
              }),
            )
            await deleteAccount({ accounts: one, keys: noKeys }, account_id)
            // The old life's writes land in the new one, too.
            const second = signsUpAgain ? await one.ofVerifiedEmail(address) : undefined
            for (const index of order) {
              const [next] = under.splice(index % Math.max(1, under.length), 1)
              if (!next) break
              next.release()
              await next.done
            }
            // What was appended last has been projected when this has been.
            await one.ofVerifiedEmail(`marker-${randomUUID()}@example.com`)
            await finishAll(one)
            expect(await one.find(account_id)).toEqual(second)
            const kept = second ? [address] : []
            expect(addressesOf(await readAccount(log, account_id))).toEqual(kept)
            if (!signsUpAgain) expect(addressesOf(await replayed(account_id))).toEqual([])
          }),
        ),
        { numRuns: runs },
      )
    }, 180_000)

    test('lets the person sign up again, with the same id, nothing of before, and no session of before', async () => {
      const [one, two] = await Promise.all([portal(), portal({ aheadMs: 60_000 })])
      const before = await one.ofVerifiedEmail(email)
      await one.delete(before.account_id)
      const after = await two.ofVerifiedEmail(email)
      expect(after.account_id).toBe(before.account_id)
      expect(after.sessions_valid_from).toBeGreaterThan(before.created_at)
    })

    test('waits for its keys: until they are deleted, nobody signs up again, and a portal knows of them', async () => {
      const one = await portal()
      const { account_id } = await one.ofVerifiedEmail(email)
      const { tables, databases } = log
      const insert = (version: number, account: string) =>
        tables.run({
          query: `INSERT INTO ${databases.base}.api_key_ledger (api_key, version, account_id)
                  SETTINGS async_insert = 0 VALUES ('key-${account_id}', ${version}, '${account}')`,
        })
      await insert(1, account_id)
      await one.delete(account_id)
      expect(await one.unfinished()).toContain(account_id)
      await expect(one.ofVerifiedEmail(email)).rejects.toMatchObject({ code: 'being-deleted' })
      await one.finishDeletion(account_id)
      expect(await one.unfinished()).toContain(account_id)
      await insert(2, '')
      await finishAll(one)
      expect(await one.ofVerifiedEmail(email)).toMatchObject({ account_id })
    })
  })
}
