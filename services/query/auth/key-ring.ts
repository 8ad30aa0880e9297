/**
 * The key ring: the active API keys in memory. It follows the read table, so authentication needs no query. A revoked
 * key is refused before the fold has it: see `withRevocations`.
 *
 * Every `pollMs` it asks for the highest fold id and the number of active keys, and reads the rows of higher fold ids than it
 * has: the fold writes in one line, so nothing comes later under a lower one. If the numbers still differ, or the table has gone back,
 * the table was restored. Then it loads all keys, in pages. A load that fails goes on where it stopped.
 *
 * Promise: valid keys are known while ClickHouse answers each statement within `readMsMax`, however many keys there are
 * and however long a load takes. If nothing could be read for `staleMsMax`, the keys are unknown. If the last complete
 * comparison is older than `freshMsMax`, the ring reports that it is not ready.
 */
import { invariant } from '../../runtime/ops/invariants.ts'
import { timeBound } from '../../tables/clickhouse/statements.ts'
import type { Databases, Statement } from '../../tables/port.ts'
import {
  createPolling,
  defaultPollingOptions,
  type Polling,
  type PollingContext,
  type Read,
} from './polling.ts'

export interface ApiKey {
  key: string
  /** Lower-case hex; see `hashSecret`. */
  secretHash: string
  scopes: readonly string[]
}

export interface KeyRing extends Polling {
  /** The active key of that name, or `undefined`. Throws `KeysUnavailableError` if it is not known. */
  lookup(key: string): ApiKey | undefined
  /** Whether the table answered recently enough to notice a revoked key in time. */
  isReady(): boolean
}

export type KeyRingOptions = typeof defaultKeyRingOptions

export const defaultKeyRingOptions = {
  ...defaultPollingOptions,
  /** A statement of a load reads this number of keys, so that it is short. */
  pageKeysMax: 20_000,
  /** Every key is loaded at least this often, even if it has not changed. One poll loads one page of them. */
  reloadMsMax: 60_000,
}

/** The keys are not known: they were never loaded, or the last successful read is too long ago. */
export class KeysUnavailableError extends Error {
  override name = 'KeysUnavailableError'
}

/** A load of all keys that is under way. */
interface Load {
  keys: Map<string, ApiKey>
  /** The last key that it has read. */
  after: string
  /** The highest fold id when it began. */
  reached: bigint
  /** The present keys may be wrong, so it does not wait for the next poll between two pages. */
  isUrgent: boolean
}

/** Creates a key ring. Call `start` to load the keys. */
export function createKeyRing(options: KeyRingOptions, context: PollingContext): KeyRing {
  const { databases, now } = context
  let keys: Map<string, ApiKey> | undefined
  let load: Load | undefined
  /** The keys have every row up to this fold id. */
  let reached = 0n
  let loadedAt = Number.NEGATIVE_INFINITY
  /** When the keys last became equal to the table. */
  let confirmedAt = Number.NEGATIVE_INFINITY
  /** When keys were last read, or confirmed. */
  let readAt = Number.NEGATIVE_INFINITY

  async function loadPage(read: Read, loading: Load): Promise<void> {
    const startedAt = now()
    const { pageKeysMax } = options
    const rows = await read<ApiKeyRow>(msMax =>
      apiKeysStatement(loading.after, pageKeysMax, databases, msMax),
    )
    for (const row of rows) loading.keys.set(row.api_key, toApiKey(row, keys?.get(row.api_key)))
    readAt = startedAt
    loading.after = rows.at(-1)?.api_key ?? loading.after
    if (rows.length === pageKeysMax) return
    load = undefined
    keys = loading.keys
    reached = loading.reached
    loadedAt = startedAt
  }

  async function readChanges(read: Read, newest: bigint): Promise<void> {
    const rows = await read<ChangedKeyRow>(msMax => changedKeysStatement(reached, databases, msMax))
    for (const row of rows) {
      // The part of the table that a load has still to read has the change, too.
      for (const known of [keys, load?.keys]) {
        if (row.is_current) known?.set(row.api_key, toApiKey(row, undefined))
        else known?.delete(row.api_key)
      }
    }
    reached = newest
  }

  async function poll(first: Read, read: Read): Promise<void> {
    const startedAt = now()
    const [row] = await first<{ newest: string; active: number }>(msMax =>
      keyStateStatement(databases, msMax),
    )
    const newest = BigInt(row?.newest ?? 0)
    if (keys !== undefined && newest > reached) await readChanges(read, newest)
    else if (keys === undefined || newest < reached || keys.size !== row?.active) {
      load = load?.isUrgent ? load : { keys: new Map(), after: '', reached: newest, isUrgent: true }
    }
    // What changes meanwhile is read by the next poll.
    while (load?.isUrgent) await loadPage(read, load)
    confirmedAt = startedAt
    readAt = Math.max(readAt, startedAt)
    if (load === undefined && startedAt - loadedAt >= options.reloadMsMax) {
      load = { keys: new Map(), after: '', reached, isUrgent: false }
    }
    if (load !== undefined) await loadPage(read, load)
  }

  return {
    ...createPolling(poll, options, context),

    lookup(key) {
      const ageMs = now() - readAt
      if (ageMs > options.staleMsMax) throw new KeysUnavailableError(`last read ${ageMs} ms ago`)
      const found = (keys ?? load?.keys)?.get(key)
      if (found === undefined && keys === undefined) throw new KeysUnavailableError('not loaded yet')
      return found
    },

    isReady: () => now() - confirmedAt <= options.freshMsMax,
  }
}

interface ApiKeyRow {
  api_key: string
  secret_hash: string
  scopes: string[]
}

interface ChangedKeyRow extends ApiKeyRow {
  is_current: boolean
}

/** A new object, because a verified secret is remembered for one load. If nothing has changed, it shares the texts of the known one. */
function toApiKey({ api_key, secret_hash, scopes }: ApiKeyRow, known: ApiKey | undefined): ApiKey {
  invariant('key-hash', secret_hash.length > 0)
  return known?.secretHash === secret_hash && known.scopes.join() === scopes.join()
    ? { ...known }
    : { key: api_key, secretHash: secret_hash, scopes }
}

/** The highest fold id of the keys, and the number of active ones: one row {newest, active}. */
export function keyStateStatement({ base }: Databases, msMax: number): Statement {
  return {
    query: `SELECT
    toString(max(fold_id)) AS newest,
    (SELECT count() FROM ${base}.api_keys FINAL WHERE is_active) AS active
FROM ${base}.api_keys
SETTINGS ${timeBound(msMax)}`,
  }
}

/** The keys that changed after this fold id, as they are now: rows of type `ChangedKeyRow`. */
export function changedKeysStatement(after: bigint, { base }: Databases, msMax: number): Statement {
  return {
    query: `SELECT
    api_key,
    argMax(secret_hash, fold_id) AS secret_hash,
    argMax(scopes, fold_id) AS scopes,
    argMax(is_active AND is_deleted = 0, fold_id) AS is_current
FROM ${base}.api_keys
WHERE fold_id > {after:UInt64}
GROUP BY api_key
SETTINGS ${timeBound(msMax)}`,
    query_params: { after: after.toString() },
  }
}

/** The next active keys after this one, in order: rows of type `ApiKeyRow`. */
export function apiKeysStatement(
  after: string,
  rowsMax: number,
  { base }: Databases,
  msMax: number,
): Statement {
  return {
    query: `SELECT api_key, secret_hash, scopes
FROM ${base}.api_keys FINAL
WHERE is_active AND api_key > {after:String}
ORDER BY api_key
LIMIT {rows_max:UInt32}
SETTINGS ${timeBound(msMax)}`,
    query_params: { after, rows_max: rowsMax },
  }
}

/*
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

export const defaultRevocationsOptions = {
  ...defaultPollingOptions,
  /**
   * How long a key stays refused at least after it has left the view. Then the fold has made it inactive, and the key ring
   * needs some time to notice.
   */
  refusedMsMin: 300_000,
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
