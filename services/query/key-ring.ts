/**
 * The key ring: the active API keys in memory, following the read table, so that authentication needs no store and a
 * revoked key is refused within two seconds.
 *
 * Every `pollMs` it asks for a fingerprint of the table, and loads the keys when that has changed. Loading all of them
 * is on purpose: whatever the reason of a change (a key revoked, a row of a superseded folder, a rebuilt table swapped
 * in), what is in memory afterwards is what the table says. When the tables do not answer, the last known keys are
 * trusted for `staleMsMax`, and the ring says that it is not ready.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { apiKeysFingerprintStatement, apiKeysStatement } from './statements.ts'

export interface ApiKey {
  key: string
  /** Lower-case hex, see `hashSecret`. */
  secretHash: string
  scopes: readonly string[]
}

export interface KeyRing {
  /** Loads the keys once and then follows them. Resolves after the first attempt, whether or not it succeeded. */
  start(): Promise<void>
  /** Stops following, and waits for the poll that may be running. */
  close(): Promise<void>
  /** The active key of that name, or `undefined`. Throws `KeysUnavailableError` while the keys are not known. */
  lookup(key: string): ApiKey | undefined
  /** Whether the table answered lately enough that a revoked key would have been noticed in time. */
  isReady(): boolean
}

export interface KeyRingOptions {
  /** Pause between two looks at the table. */
  pollMs: number
  /** Bound on one look, after which it counts as failed. */
  pollMsMax: number
  /** The keys are loaded at least this often, changed or not. */
  reloadMsMax: number
  /** How long the last known keys count as fresh. */
  freshMsMax: number
  /** How long the last known keys are trusted while the tables do not answer. */
  staleMsMax: number
}

export interface KeyRingDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: KeyRingOptions
  /** Unix milliseconds. */
  now: () => number
  /** Told of every failed poll, for the log. */
  onError: (error: unknown) => void
}

export const defaultKeyRingOptions: KeyRingOptions = {
  pollMs: 500,
  pollMsMax: 1000,
  reloadMsMax: 60_000,
  freshMsMax: 2000,
  staleMsMax: 60_000,
}

/** The keys are not known: never loaded, or not confirmed for longer than they may be trusted. */
export class KeysUnavailableError extends Error {
  override name = 'KeysUnavailableError'
}

/** Makes a key ring that has not started. */
export function createKeyRing({ tables, databases, options, now, onError }: KeyRingDependencies): KeyRing {
  const stopping = new AbortController()
  let keys: ReadonlyMap<string, ApiKey> = new Map()
  let fingerprint: string | undefined
  let loadedAt = Number.NEGATIVE_INFINITY
  let confirmedAt = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()

  async function poll(): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(options.pollMsMax)])
    const startedAt = now()
    const [look] = await tables.rows<{ fingerprint: string }>(
      apiKeysFingerprintStatement(databases, options.pollMsMax),
      { signal },
    )
    // The look comes first: a change between the two is in the keys already, and shows at the next look.
    if (look?.fingerprint !== fingerprint || startedAt - loadedAt >= options.reloadMsMax) {
      const rows = await tables.rows<ApiKeyRow>(apiKeysStatement(databases, options.pollMsMax), { signal })
      keys = new Map(rows.map(row => [row.api_key, toApiKey(row)]))
      fingerprint = look?.fingerprint
      loadedAt = startedAt
    }
    confirmedAt = startedAt
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
      const ageMs = now() - confirmedAt
      if (ageMs > options.staleMsMax) throw new KeysUnavailableError(`last confirmed ${ageMs} ms ago`)
      return keys.get(key)
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
