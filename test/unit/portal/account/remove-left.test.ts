/** Integrations without an account are removed at the start, but only if the account is known to be deleted. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { AccountEvent } from '../../../../contracts/events/portal-event.ts'
import { openAccounts } from '../../../../services/portal/accounts/accounts.ts'
import type { StateTopic } from '../../../../services/shared/event-log/state-topic.ts'

const key = 'acct/mirror'
const state: AccountEvent = {
  type: 'integration',
  data: {
    ...{ integration_id: 'mirror', account_id: 'acct', name: 'Mirror', url: 'https://mirror.example' },
    ...{ contact_email: 'dev@mirror.example', created_at: 0, changed_at: 0 },
  },
}

test.each([
  [1, []],
  [0, [{ key, state: null }]],
])('if %i records cannot be read, these are removed: %j', async (skipped, removed) => {
  const written: unknown[] = []
  const topic: StateTopic<'accounts'> = {
    topic: 'accounts',
    get: async asked => (asked === key ? state : undefined),
    group: async () => [],
    all: async () => [{ key, state }],
    refresh: async () => undefined,
    write: async changes => void written.push(...changes),
    skipped: () => skipped,
    health: () => ({ ok: true, detail: '' }),
    close: async () => undefined,
  }
  const logger = pino({ level: 'silent' })
  await openAccounts({ topic, portalKey: 'ab'.repeat(32), now: () => 0, logger })
  expect(written).toEqual(removed)
})
