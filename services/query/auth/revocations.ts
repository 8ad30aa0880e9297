/**
 * Revocations: refuses a key as soon as the ledger knows that it is revoked.
 *
 * The key ring follows the read table, so it learns of a revocation only after a fold. A fold may wait: for a backlog, for
 * the promotion of a rebuild, or for a new leader. A revocation must not wait, so it is read from the ledger (the view
 * `revoked_keys`).
 *
 * Promise: a key is refused within two seconds of the insert of its revocation into the ledger, while ClickHouse answers.
 * If the last read is older than `freshMsMax`, this reports that it is not ready. The keys that it has read stay refused. If
 * it is older than `staleMsMax`, it lets no key pass: a key may be revoked, or its time may be over.
 */
import type { Databases, Statement } from '../../tables/port.ts'
import { timeBound } from '../statement-settings.ts'
import { type KeyRing, KeysUnavailableError } from './key-ring.ts'
import { createPolling, defaultPollingOptions, type PollingContext, type Read } from './polling.ts'

export const defaultRevocationsOptions = {
  ...defaultPollingOptions,
  /** How long this is ready after a successful read. */
  freshMsMax: 2_000,
  /**
   * How long a key stays refused at least after it has left the view. Then the fold has made it inactive, and the key ring
   * needs some time to notice.
   */
  refusedMsMin: 300_000,
  /** If nothing could be read for this long, it is not known which keys are valid. */
  staleMsMax: 60_000,
}

/** The same key ring, but it also refuses the keys that are revoked and not folded yet. */
export function withRevocations(
  keyRing: KeyRing,
  options: typeof defaultRevocationsOptions,
  context: PollingContext,
): KeyRing {
  const { databases, now } = context
  // Each refused key, and when it was last in the view.
  const refused = new Map<string, number>()
  let readAt = Number.NEGATIVE_INFINITY

  async function poll(first: Read): Promise<void> {
    const startedAt = now()
    const rows = await first<{ api_key: string }>(msMax => revokedKeysStatement(databases, msMax))
    for (const { api_key: key } of rows) refused.set(key, startedAt)
    readAt = startedAt
    // The key ring has just been equal to the table, so it knows without help what is active.
    if (!keyRing.isReady()) return
    for (const [key, at] of refused) if (startedAt - at > options.refusedMsMin) refused.delete(key)
  }
  const polling = createPolling(poll, options, context)

  return {
    start: async () => void (await Promise.all([keyRing.start(), polling.start()])),
    close: async () => void (await Promise.all([keyRing.close(), polling.close()])),

    lookup(key) {
      const found = keyRing.lookup(key)
      const ageMs = now() - readAt
      if (ageMs > options.staleMsMax) throw new KeysUnavailableError(`revocations last read ${ageMs} ms ago`)
      return refused.has(key) ? undefined : found
    },

    isReady: () => keyRing.isReady() && now() - readAt <= options.freshMsMax,
  }
}

/** The keys to refuse although the key table still has them as active: rows {api_key}. */
export function revokedKeysStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT api_key
FROM ${databases.base}.revoked_keys
SETTINGS ${timeBound(msMax)}`,
  }
}
