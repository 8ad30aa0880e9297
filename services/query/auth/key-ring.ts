/**
 * The key ring: the active API keys in memory. It follows the read table, so authentication needs no query. A revoked
 * key is refused before the fold has it: see revocations.ts.
 *
 * Every `pollMs` it reads a fingerprint of the table. If the fingerprint has changed, it reads a fingerprint of each
 * bucket of keys, and loads the buckets that differ, in pages. So the cost of a change does not grow with the number of
 * keys, and a load that fails goes on where it stopped. Whatever the change was (a revoked key, a row of a fold worker
 * that lost leadership, a rebuilt table that was swapped in), the memory then equals the table.
 *
 * Promise: valid keys are known while ClickHouse answers each statement within `readMsMax`, however many keys there are
 * and however long a load takes. If nothing could be read for `staleMsMax`, the keys are unknown. If the last complete
 * comparison is older than `freshMsMax`, the ring reports that it is not ready.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { timeBound } from '../statement-settings.ts'
import { bucketCount, createKeyBuckets, type ListedBucket } from './key-buckets.ts'

export interface ApiKey {
  key: string
  /** Lower-case hex; see `hashSecret`. */
  secretHash: string
  scopes: readonly string[]
}

export interface KeyRing {
  /** Loads the keys once and then follows them. Resolves after the first attempt, even if it failed. */
  start(): Promise<void>
  /** Stops following, and waits for a poll that is running. */
  close(): Promise<void>
  /** The active key of that name, or `undefined`. Throws `KeysUnavailableError` if it is not known. */
  lookup(key: string): ApiKey | undefined
  /** Whether the table answered recently enough to notice a revoked key in time. */
  isReady(): boolean
}

export interface KeyRingOptions {
  /** Pause between two polls. */
  pollMs: number
  /**
   * Time limit of reading the fingerprint, so that a poll on a lost connection is soon tried again. It grows up to
   * `readMsMax` if the table needs longer.
   */
  pollMsMax: number
  /** Time limit of one statement that reads keys. */
  readMsMax: number
  /** A statement reads about this number of keys, so that it is short. */
  pageKeysMax: number
  /** Every key is loaded at least this often, even if it has not changed. One poll loads one page of them. */
  reloadMsMax: number
  /** How long the ring is ready after a complete comparison with the table. */
  freshMsMax: number
  /** How long the last known keys stay valid while nothing can be read. */
  staleMsMax: number
}

export interface KeyRingDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: KeyRingOptions
  /** Unix milliseconds. */
  now: () => number
  /** Called for every failed poll, for the log. */
  onError: (error: unknown) => void
}

export const defaultKeyRingOptions: KeyRingOptions = {
  pollMs: 500,
  pollMsMax: 1000,
  readMsMax: 15_000,
  pageKeysMax: 20_000,
  reloadMsMax: 60_000,
  freshMsMax: 2000,
  staleMsMax: 60_000,
}

/** The keys are not known: they were never loaded, or the last successful read is too long ago. */
export class KeysUnavailableError extends Error {
  override name = 'KeysUnavailableError'
}

/** Creates a key ring. Call `start` to load the keys. */
export function createKeyRing({ tables, databases, options, now, onError }: KeyRingDependencies): KeyRing {
  const { pollMsMax, readMsMax, pageKeysMax } = options
  const stopping = new AbortController()
  const buckets = createKeyBuckets()
  let fingerprint: string | undefined
  let fingerprintMsMax = pollMsMax
  /** When the keys last became equal to the table. */
  let confirmedAt = Number.NEGATIVE_INFINITY
  /** When keys were last read, or confirmed. */
  let readAt = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()

  function read<Row>(statement: Statement, msMax: number): Promise<Row[]> {
    return tables.rows<Row>(statement, {
      signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(msMax)]),
    })
  }

  async function readFingerprint(): Promise<string | undefined> {
    const startedAt = now()
    const msMax = fingerprintMsMax
    // If this read fails, the next one has more time.
    fingerprintMsMax = Math.min(readMsMax, 2 * msMax)
    const [row] = await read<{ fingerprint: string }>(apiKeysFingerprintStatement(databases, msMax), msMax)
    fingerprintMsMax = Math.min(readMsMax, Math.max(pollMsMax, 2 * (now() - startedAt)))
    return row?.fingerprint
  }

  async function loadPage(page: readonly number[]): Promise<void> {
    const startedAt = now()
    const statement = apiKeysStatement(page, bucketCount, databases, readMsMax)
    const rows = await read<ApiKeyRow>(statement, readMsMax)
    buckets.replace(page, rows.map(toApiKey), startedAt)
    readAt = startedAt
  }

  async function loadChanged(): Promise<void> {
    const startedAt = now()
    const statement = apiKeyBucketsStatement(bucketCount, databases, readMsMax)
    const changed = buckets.compare(await read<ListedBucket>(statement, readMsMax), startedAt)
    for (const page of buckets.pages(changed, pageKeysMax)) await loadPage(page)
  }

  async function poll(): Promise<void> {
    const startedAt = now()
    // The fingerprint is read first. A change between the two reads is already in the keys, and the next poll sees it
    // again.
    const found = await readFingerprint()
    if (found !== fingerprint) {
      // A load that fails has changed a part of the keys. Then the next poll compares, even if the change was taken back.
      fingerprint = undefined
      await loadChanged()
      fingerprint = found
    }
    confirmedAt = startedAt
    readAt = Math.max(readAt, startedAt)
    const old = buckets.loadedBefore(startedAt - options.reloadMsMax + 1, pageKeysMax)
    if (old.length > 0) await loadPage(old)
  }

  async function tryPoll(): Promise<void> {
    try {
      await poll()
    } catch (error) {
      if (!stopping.signal.aborted) onError(error)
    }
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      await delay(options.pollMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (!stopping.signal.aborted) await tryPoll()
    }
  }

  return {
    async start() {
      await tryPoll()
      following = follow()
    },

    async close() {
      stopping.abort()
      await following
    },

    lookup(key) {
      const ageMs = now() - readAt
      if (ageMs > options.staleMsMax) throw new KeysUnavailableError(`last read ${ageMs} ms ago`)
      const found = buckets.lookup(key)
      if (found === 'not loaded') throw new KeysUnavailableError('not loaded yet')
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

function toApiKey(row: ApiKeyRow): ApiKey {
  return { key: row.api_key, secretHash: row.secret_hash, scopes: row.scopes }
}

/** A fingerprint of the keys: one row {fingerprint}. Merges of the table change it too, which does no harm. */
export function apiKeysFingerprintStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT concat(
    toString(count()), ' ', toString(max(fold_id)), ' ',
    toString(sum(cityHash64(api_key, secret_hash, scopes, is_active, is_deleted, fold_id)))
) AS fingerprint
FROM ${databases.base}.api_keys
SETTINGS ${timeBound(msMax)}`,
  }
}

/** The buckets of the key table that have rows: rows {bucket, row_count, fingerprint}. */
export function apiKeyBucketsStatement(buckets: number, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT
    ${keyBucket} AS bucket,
    count() AS row_count,
    toString(sum(cityHash64(api_key, secret_hash, scopes, is_active, is_deleted, fold_id))) AS fingerprint
FROM ${databases.base}.api_keys
GROUP BY bucket
SETTINGS ${timeBound(msMax)}`,
    query_params: { bucket_count: buckets },
  }
}

/** The active keys of these buckets: rows {api_key, secret_hash, scopes}. */
export function apiKeysStatement(
  buckets: readonly number[],
  bucketCount: number,
  databases: Databases,
  msMax: number,
): Statement {
  return {
    query: `SELECT api_key, secret_hash, scopes
FROM ${databases.base}.api_keys FINAL
WHERE is_active AND ${keyBucket} IN {buckets:Array(UInt32)}
SETTINGS ${timeBound(msMax)}`,
    query_params: { buckets, bucket_count: bucketCount },
  }
}

// The same as `bucketOf` in auth/key-buckets.ts.
const keyBucket = 'CRC32(api_key) % {bucket_count:UInt32}'
