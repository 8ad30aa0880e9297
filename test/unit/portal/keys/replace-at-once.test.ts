/** A replacement at once ends the old key only if nothing is known against a new one. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { KeyAdmin, KeyRecord } from '../../../../services/api-keys/api-keys.ts'
import { createPortalKeys } from '../../../../services/portal/keys/portal-keys.ts'
import { sampleIntegration } from '../../../support/portal/memory-ports.ts'

const now = Date.parse('2026-11-22T12:00:00Z')

function record(key: string, status: KeyRecord['status']): KeyRecord {
  return {
    ...{ key, status, version: '1', account_id: 'account', name: 'Mirror', url: '', contact_email: '' },
    ...{ secret_hash: '', scopes: [], issued_at_ms: now - 1_000, integration_id: 'mirror' },
    ...{ expires_at_ms: null, replaces: '', replaced_until_ms: null },
  }
}

test.each([
  ['too many were created within a day', Array<KeyRecord['status']>(19).fill('revoked'), 'within a day'],
  ['a key waits beside three active ones', ['active', 'active', 'waiting'] as const, 'Nothing was changed'],
])('leaves the old key if %s', async (_case, others, reason) => {
  const keys = [record('old', 'active'), ...others.map((status, n) => record(`other-${n}`, status))]
  const appended: unknown[] = []
  const admin = {
    directory: {
      ofAccount: async () => keys,
      find: async (key: string) => keys.filter(found => found.key === key),
    },
    writer: { append: async (records: unknown) => void appended.push(records) },
    ...{ pepper: 'pepper'.repeat(8), now: () => now, monotonicMs: () => performance.now(), randomBytes },
  } as unknown as KeyAdmin
  const revoked: string[] = []
  const replacing = createPortalKeys(admin).replace(
    'account',
    'old',
    'at-once',
    sampleIntegration('account'),
    () => revoked.push('old'),
  )
  await expect(replacing).rejects.toThrow(reason)
  expect(appended).toEqual([])
  expect(revoked).toEqual([])
})
