/**
 * A cache that all processes share through Redis, with a local cache of each process in front of it.
 *
 * Promises while Redis is available:
 * - Within one period, every process returns the same value for a key: the first one stored. If a process has loaded
 *   another value meanwhile, it returns the stored one.
 * - One process loads at a time, and the others wait. If it holds the lock for longer than the lock period, because it
 *   is slow or because it crashed, another process takes over. A process that has waited for two lock periods loads the
 *   value without a lock.
 * - A value never lives longer in another process than in the process that loaded it, whatever the clocks say.
 *
 * If Redis is unavailable, each process uses its own cache and does not wait.
 *
 * A value that is too large for Redis, or that cannot be decoded, counts as missing.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RedisConnection } from '../../shared/redis/connection.ts'
import { createCacheEntryLock, type StoredValue } from './cache-entry-lock.ts'
import type { ExpiringCache } from './expiring-cache.ts'

/** When a value was created and when it expires, in Unix milliseconds. */
export interface Lifetime {
  createdAt: number
  expiresAt: number
}

/** Encodes a value without its lifetime. `decode` rejects bytes that it cannot read. */
export interface Codec<Value extends Lifetime> {
  encode(value: Value): Promise<Buffer>
  decode(bytes: Buffer, lifetime: Lifetime): Promise<Value>
}

export interface SharedCacheDependencies<Value extends Lifetime> {
  connection: RedisConnection
  /** Prefix of every key. Caches with the same prefix share their values. */
  keyPrefix: string
  codec: Codec<Value>
  /** The cache in front of Redis, for this process only. */
  local: ExpiringCache<Value>
  /** Larger values stay in this process. */
  valueBytesMax: number
  /** Whether this owner may store the value in Redis. Otherwise it stays in this process. Default: yes. */
  mayStore?: (value: Value, owner: string) => boolean
  /** The clock of the values' times. */
  now: () => number
  /** Returns a token that is unique among all processes. */
  newToken: () => string
  /** How long a process holds the lock while it loads a value. Default 3000. */
  lockMs?: number
}

const lockMsDefault = 3000
const pollMs = 25

/** Creates a cache over what Redis holds already. It never rejects because of Redis. */
export function createRedisSharedCache<Value extends Lifetime>(
  dependencies: SharedCacheDependencies<Value>,
): ExpiringCache<Value> {
  const { codec, local, valueBytesMax, mayStore, now, newToken, lockMs = lockMsDefault } = dependencies
  const lock = createCacheEntryLock({ ...dependencies, lockMs })
  const pollsMax = Math.ceil((2 * lockMs) / pollMs)

  /**
   * Returns the value, or `undefined`: the caller must then load it. The caller has the lock if it could be acquired.
   */
  async function findOrClaim(key: string, token: string): Promise<Value | undefined> {
    for (let poll = 1; poll <= pollsMax; poll++) {
      const found = await lock.claim(key, token)
      if (typeof found === 'object') return read(found)
      if (found !== 'locked') return undefined
      await delay(pollMs)
    }
    return undefined
  }

  /**
   * Stores the value. Returns the value that all processes use: this one, or one that another process stored earlier.
   */
  async function store(key: string, token: string, value: Value, owner: string): Promise<Value> {
    const { createdAt, expiresAt } = value
    const isWanted = now() < expiresAt && (mayStore?.(value, owner) ?? true)
    const bytes = isWanted ? withLifetime(expiresAt - createdAt, await codec.encode(value)) : undefined
    if (bytes === undefined || bytes.length > valueBytesMax) {
      await lock.release(key, token)
      return value
    }
    const kept = await lock.store(key, { bytes, expiresAt })
    if (kept === 'unavailable') return value
    return kept.bytes === bytes ? { ...value, expiresAt: kept.expiresAt } : ((await read(kept)) ?? value)
  }

  async function read({ bytes, expiresAt }: StoredValue): Promise<Value | undefined> {
    try {
      const createdAt = expiresAt - bytes.readUInt32BE()
      return await codec.decode(bytes.subarray(lifetimeBytes), { createdAt, expiresAt })
    } catch {
      return undefined
    }
  }

  async function loadShared(key: string, load: () => Promise<Value>, owner: string): Promise<Value> {
    const token = newToken()
    const found = await findOrClaim(key, token)
    if (found !== undefined) return found
    try {
      return await store(key, token, await load(), owner)
    } catch (error) {
      await lock.release(key, token)
      throw error
    }
  }

  return {
    find: local.find,
    get: (key, load, owner = '') => local.get(key, () => loadShared(key, load, owner), owner),
  }
}

const lifetimeBytes = 4

/**
 * Puts the lifetime of the value in milliseconds in front of it. With the time left that Redis returns, this gives its
 * age.
 */
function withLifetime(lifetimeMs: number, bytes: Buffer): Buffer {
  const lifetime = Buffer.alloc(lifetimeBytes)
  lifetime.writeUInt32BE(lifetimeMs)
  return Buffer.concat([lifetime, bytes])
}
