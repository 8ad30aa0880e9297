/** Keys, usage and fast-check inputs for the tests of the pages under /access. */
import fc from 'fast-check'
import type { KeyView } from '../../../../services/portal/keys/key-pages.ts'
import type { PortalKey } from '../../../../services/portal/ports.ts'
import type { KeyUsage, UsageCounts } from '../../../../services/portal/usage/usage-reader.ts'

export const now = Date.parse('2026-11-22T14:05:30Z')
const dayMs = 86_400_000

export function sampleKey(changes: Partial<PortalKey> = {}): PortalKey {
  return {
    key: 'pv_live_abcdefgh0123456789abcdef',
    version: '1',
    account_id: 'acct_1',
    name: 'Backer Board',
    url: 'https://board.example',
    contact_email: 'ops@board.example',
    secret_hash: '0'.repeat(64),
    scopes: ['read:public'],
    issued_at_ms: now - dayMs,
    status: 'active',
    expires_at_ms: null,
    ...changes,
  }
}

export const noRequests: UsageCounts = {
  ok: 0,
  not_modified: 0,
  unauthorized: 0,
  too_many: 0,
  other: 0,
  deprecated: 0,
}

/** Thirty days up to now. The counts are those of the last day; the other days have none. */
export function sampleUsage(counts: Partial<UsageCounts> = {}): KeyUsage {
  const days = Array.from({ length: 30 }, (_, index) => ({
    ...noRequests,
    ...(index === 29 && counts),
    day: new Date(now - (29 - index) * dayMs).toISOString().slice(0, 10),
  }))
  return { last_used: now, days }
}

export function sampleView(key: Partial<PortalKey> = {}, usage: KeyView['usage'] = sampleUsage()): KeyView {
  return { key: sampleKey(key), usage }
}

/** Text that would be markup if it were not escaped: it has both kinds of quotes, and tags. */
export const hostileText = fc
  .tuple(
    fc.string(),
    fc.constantFrom('<script>', '"><img src=x>', "' onclick='x", '</title>', '&lt;', '<!--'),
  )
  .map(([text, markup]) => `${text}${markup}`)
