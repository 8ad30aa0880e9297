/** What accounts promise while several portals use them at once, for every log that they may stand on. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { EventWriter } from '../../../../services/log/port.ts'
import { openAccounts } from '../../../../services/portal/account/accounts.ts'
import { PortalUnavailable } from '../../../../services/portal/own-events.ts'
import type { Accounts } from '../../../../services/portal/ports.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import type { ProjectedLog } from '../../../support/portal/projected-log.ts'

const portalKey = 'ab'.repeat(32)
const start = 1_790_000_000_000

export function describeAccounts(make: () => Promise<ProjectedLog>): void {
  describe('accounts', () => {
    let log: ProjectedLog
    let clock = start
    let email = ''

    afterAll(() => log?.close())
    beforeEach(async () => {
      // Not before all tests: a test that is skipped has no service to make it with.
      log ??= await make()
      clock = start
      // Each test is about another person.
      email = `ann-${randomUUID()}@example.com`
    })

    async function portal(
      change: (writer: EventWriter) => EventWriter = writer => writer,
      options: { writeMsMax?: number } = {},
    ): Promise<Accounts> {
      const { tables, databases } = log
      const time = { now: () => clock++, monotonicMs: () => performance.now(), sleep }
      const writer = change(await log.openWriter())
      return openAccounts({ writer, tables, databases, portalKey, ...time, ...options })
    }

    const portals = () => Promise.all([portal(), portal()])

    test('are one of sign-ups at once on two portals, however the address is written', async () => {
      const [one, two] = await portals()
      const spellings = [email.toUpperCase(), `${email} `, email.replace('a', 'A'), email]
      const signedUp = await Promise.all(
        spellings.map((spelling, index) => (index % 2 === 0 ? one : two).ofVerifiedEmail(spelling)),
      )
      const [first] = signedUp
      expect(new Set(signedUp.map(({ account_id }) => account_id)).size).toBe(1)
      for (const accounts of [one, two, await portal()]) {
        const found = await accounts.ofVerifiedEmail(email)
        expect(found).toMatchObject({ account_id: first?.account_id, email })
        // A session of any of the sign-ups lives on.
        for (const { created_at } of signedUp) expect(found.sessions_valid_from).toBeLessThan(created_at)
      }
    })

    test('end their sessions everywhere at once, also if a portal whose clock is ahead has written before', async () => {
      const [one, two] = await portals()
      const { account_id } = await one.ofVerifiedEmail(email)
      clock += 600_000
      await one.endSessions(account_id)
      clock -= 600_000
      const ahead = (await one.find(account_id))?.sessions_valid_from ?? 0
      await two.endSessions(account_id)
      expect((await two.find(account_id))?.sessions_valid_from).toBe(ahead + 1)
    })

    test('have no session left to end once they are deleted, also while a portal ends them', async () => {
      const one = await portal()
      const { account_id } = await one.ofVerifiedEmail(email)
      const late = await portal(writer => ({
        ...writer,
        async append(records) {
          await one.delete(account_id)
          await writer.append(records)
        },
      }))
      await late.endSessions(account_id)
      await late.endSessions(account_id)
      expect(await one.find(account_id)).toBeUndefined()
    })

    test('say within a bounded time that the log does not take a change', async () => {
      const { account_id } = await (await portal()).ofVerifiedEmail(email)
      const never = Promise.withResolvers<never>()
      const hung = await portal(writer => ({ ...writer, append: () => never.promise }), { writeMsMax: 50 })
      await expect(hung.endSessions(account_id)).rejects.toThrow(PortalUnavailable)
      // Reading needs no log.
      expect(await hung.find(account_id)).toMatchObject({ email })
    })
  })
}
