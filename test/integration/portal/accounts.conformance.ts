/** What accounts promise while several portals use them at once, for every log that they may stand on. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { deleteAccount } from '../../../services/portal/account/delete-account.ts'
import { AccountError, integrationsMax, openAccounts } from '../../../services/portal/accounts/accounts.ts'
import type { Accounts, Integration } from '../../../services/portal/ports.ts'
import type { StateTopic } from '../../../services/shared/event-log/state-topic.ts'
import { recordingLogger } from '../../support/recording-logger.ts'

export interface AccountLog {
  open(): Promise<StateTopic<'accounts'>>
  remove(): Promise<void>
}

const portalKey = 'ab'.repeat(32)
const start = 1_790_000_000_000

export function describeAccounts(name: string, make: () => Promise<AccountLog>): void {
  describe(`accounts ${name}`, () => {
    let log: AccountLog
    let opened: Accounts[] = []
    let clock = start

    beforeEach(async () => {
      log = await make()
      clock = start
    })

    afterEach(async () => {
      await Promise.all(opened.map(accounts => accounts.close()))
      opened = []
      await log.remove()
    })

    async function portal(
      change: (topic: StateTopic<'accounts'>) => StateTopic<'accounts'> = topic => topic,
      key = portalKey,
    ): Promise<Accounts> {
      const topic = await log.open()
      const { logger } = recordingLogger()
      const accounts = await openAccounts({
        topic: change(topic),
        portalKey: key,
        now: () => clock++,
        logger,
      }).catch(async error => {
        await topic.close()
        throw error
      })
      opened.push(accounts)
      return accounts
    }

    const portals = () => Promise.all([portal(), portal()])

    test('makes one account of sign-ups at once on two portals, however the address is written', async () => {
      const [one, two] = await portals()
      const spellings = ['Ann@Example.com', 'ann@example.com ', 'ANN@EXAMPLE.COM', 'ann@example.com']
      const signedUp = await Promise.all(
        spellings.map((spelling, index) => (index % 2 === 0 ? one : two).ofVerifiedEmail(spelling)),
      )
      const [first] = signedUp
      expect(new Set(signedUp.map(({ account_id }) => account_id)).size).toBe(1)
      for (const accounts of [one, two, await portal()]) {
        const found = await accounts.ofVerifiedEmail('ann@example.com')
        expect(found).toMatchObject({ account_id: first?.account_id, email: 'ann@example.com' })
        // A session of any of the sign-ups lives on.
        for (const { created_at } of signedUp) expect(found.sessions_valid_from).toBeLessThan(created_at)
      }
    })

    test('keeps the account that is there, and refuses what is no address', async () => {
      const [one, two] = await portals()
      const account = await one.ofVerifiedEmail('ann@example.com')
      expect(await two.ofVerifiedEmail('ann@example.com')).toEqual(account)
      expect(await two.find(account.account_id)).toEqual(account)
      expect(await two.find('acct_none')).toBeUndefined()
      await expect(one.ofVerifiedEmail('ann')).rejects.toMatchObject({ code: 'invalid' })
    })

    test('ends sessions everywhere: the other portal knows it by its next read of the log', async () => {
      const [one, two] = await portals()
      const { account_id, created_at } = await one.ofVerifiedEmail('ann@example.com')
      await one.endSessions(account_id)
      await expect
        .poll(async () => (await two.find(account_id))?.sessions_valid_from)
        .toBeGreaterThan(created_at)
      await expect(one.endSessions('acct_none')).rejects.toMatchObject({ code: 'no-account' })
    })

    test('ends sessions also if a portal whose clock is ahead has written before', async () => {
      const [one, two] = await portals()
      const { account_id } = await one.ofVerifiedEmail('ann@example.com')
      clock += 600_000
      await one.endSessions(account_id)
      clock -= 600_000
      const ahead = (await one.find(account_id))?.sessions_valid_from ?? 0
      await two.endSessions(account_id)
      expect((await two.find(account_id))?.sessions_valid_from).toBe(ahead + 1)
    })

    test('keeps the mark of a deletion that was interrupted: the account is gone, and another portal knows of it', async () => {
      const [one, two] = await portals()
      const { account_id } = await one.ofVerifiedEmail('ann@example.com')
      await one.saveIntegration(integration(account_id))
      await one.beginDeletion(account_id)
      await expect.poll(() => two.beingDeleted()).toEqual([account_id])
      expect(await two.find(account_id)).toBeUndefined()
      await expect(two.ofVerifiedEmail('ann@example.com')).rejects.toMatchObject({ code: 'being-deleted' })
      const text = async () => {
        const topic = await log.open()
        const states = JSON.stringify(await topic.all())
        await topic.close()
        return states
      }
      expect(await text()).not.toContain('@')
      const three = await portal()
      await three.delete(account_id)
      expect(await text()).toBe('[]')
      expect(await three.beingDeleted()).toEqual([])
    })

    test('leaves nothing of a deleted account whose sessions another portal ends at that moment', async () => {
      const one = await portal()
      const { account_id } = await one.ofVerifiedEmail('ann@example.com')
      const late = Promise.withResolvers<void>()
      const arrived = Promise.withResolvers<void>()
      const two = await portal(topic => ({
        ...topic,
        async write(changes) {
          arrived.resolve()
          await late.promise
          await topic.write(changes)
        },
      }))
      const ending = two.endSessions(account_id)
      await arrived.promise
      let deletions = 0
      const keys = {
        ofAccount: async () => [],
        revoke: async () => Promise.reject(new Error('there is no key')),
        async deleteAll() {
          deletions++
          // Between the first tombstone of the account and the last one.
          if (deletions < 2) return
          late.resolve()
          await ending
        },
      }
      await deleteAccount({ accounts: one, keys }, account_id)
      const topic = await log.open()
      expect(await topic.all()).toEqual([])
      await topic.close()
    })

    test('keeps changes of different integrations on two portals at once', async () => {
      const [one, two] = await portals()
      const { account_id } = await one.ofVerifiedEmail('ann@example.com')
      const made = Array.from({ length: 8 }, (_, n) =>
        integration(account_id, { name: `Mirror ${n}`, created_at: n }),
      )
      await Promise.all(made.map((each, n) => (n % 2 === 0 ? one : two).saveIntegration(each)))
      await Promise.all([
        one.saveIntegration({ ...made[0], name: 'Renamed' } as Integration),
        two.removeIntegration(account_id, made[1]?.integration_id ?? ''),
        two.endSessions(account_id),
      ])
      for (const accounts of [await portal(), await portal()]) {
        const names = (await accounts.integrations(account_id)).map(({ name }) => name)
        expect(names).toEqual([
          'Renamed',
          'Mirror 2',
          'Mirror 3',
          'Mirror 4',
          'Mirror 5',
          'Mirror 6',
          'Mirror 7',
        ])
      }
    })

    test('never lets an account have more integrations than the limit, added on two portals at once', async () => {
      const [one, two] = await portals()
      const { account_id } = await one.ofVerifiedEmail('ann@example.com')
      for (let n = 0; n < integrationsMax - 2; n++) await one.saveIntegration(integration(account_id))
      const results = await Promise.allSettled(
        Array.from({ length: 6 }, (_, n) =>
          (n % 2 === 0 ? one : two).saveIntegration(integration(account_id)),
        ),
      )
      const refused = results.filter(result => result.status === 'rejected')
      expect(refused.length).toBeGreaterThanOrEqual(4)
      for (const { reason } of refused) expect(reason).toMatchObject({ code: 'too-many-integrations' })
      const kept = await (await portal()).integrations(account_id)
      expect(kept).toHaveLength(integrationsMax - 2 + (results.length - refused.length))
      // One that is there can still be changed.
      for (let n = kept.length; n < integrationsMax; n++) await one.saveIntegration(integration(account_id))
      await one.saveIntegration({ ...kept[0], name: 'Renamed' } as Integration)
      await expect(one.saveIntegration(integration(account_id))).rejects.toThrow('at most 20')
    })

    test('refuses fields that do not fit, with a message for each', async () => {
      const accounts = await portal()
      const { account_id } = await accounts.ofVerifiedEmail('ann@example.com')
      const wrong = integration(account_id, { name: '', url: 'javascript:alert(1)' })
      const saving = accounts.saveIntegration(wrong)
      await expect(saving).rejects.toThrow(AccountError)
      await expect(saving).rejects.toMatchObject({
        code: 'invalid',
        faults: { name: 'is missing', url: 'does not begin with https:// or http://' },
      })
      expect(await accounts.integrations(account_id)).toEqual([])
    })

    test('leaves nothing of a deleted account, also if the other portal adds to it at that moment', async () => {
      const [one, two] = await portals()
      for (let round = 0; round < 5; round++) {
        const { account_id } = await one.ofVerifiedEmail('ann@example.com')
        await one.saveIntegration(integration(account_id))
        const [, added] = await Promise.allSettled([
          one.delete(account_id),
          two.saveIntegration(integration(account_id)),
        ])
        if (added.status === 'rejected') expect(added.reason).toMatchObject({ code: 'no-account' })
        const topic = await log.open()
        expect(await topic.all()).toEqual([])
        await topic.close()
        expect(await (round % 2 === 0 ? one : two).find(account_id)).toBeUndefined()
      }
      await expect(one.saveIntegration(integration('acct_none'))).rejects.toMatchObject({
        code: 'no-account',
      })
    })

    test('lets the person sign up again after a deletion, with the same id, nothing of before, and no session of before', async () => {
      const [one, two] = await portals()
      const before = await one.ofVerifiedEmail('ann@example.com')
      await one.saveIntegration(integration(before.account_id))
      clock += 60_000
      await one.delete(before.account_id)
      const after = await two.ofVerifiedEmail('ann@example.com')
      expect(after.account_id).toBe(before.account_id)
      expect(after.sessions_valid_from).toBeGreaterThan(before.created_at)
      expect(await two.integrations(after.account_id)).toEqual([])
    })

    test('removes what a portal has left that was killed while it deleted an account', async () => {
      let writes = 0
      const killed = await portal(topic => ({
        ...topic,
        write: changes => {
          // The account and its integration are written, then the account's tombstone. Then it is killed.
          writes++
          return writes > 3 ? Promise.reject(new Error('killed')) : topic.write(changes)
        },
      }))
      const { account_id } = await killed.ofVerifiedEmail('ann@example.com')
      await killed.saveIntegration(integration(account_id))
      await expect(killed.delete(account_id)).rejects.toThrow('killed')
      await portal()
      const topic = await log.open()
      expect(await topic.all()).toEqual([])
      await topic.close()
    })

    test('refuses to open with another key, because nobody would find an account', async () => {
      const one = await portal()
      await one.ofVerifiedEmail('ann@example.com')
      await expect(portal(undefined, 'cd'.repeat(32))).rejects.toThrow('PLEDGEVIEW_PORTAL_KEY')
      await portal()
    })
  })
}

function integration(accountId: string, part: Partial<Integration> = {}): Integration {
  return {
    integration_id: randomUUID(),
    account_id: accountId,
    name: 'Mirror',
    url: 'https://mirror.example/',
    contact_email: 'dev@mirror.example',
    created_at: start,
    ...part,
  }
}
