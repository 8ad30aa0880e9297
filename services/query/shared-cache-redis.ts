/**
 * A cache that all processes share through Redis, with each process's own in front of it.
 *
 * Promises, while Redis answers:
 * - within one period every process gives the same value for a key, the first that was stored: who has loaded another
 *   meanwhile gives that one too;
 * - one process loads at a time, and the others wait. Who has loaded for longer than a lock lasts, be it that it is slow
 *   or that it is no more, is followed by another; who has waited for two locks loads without;
 * - a value ends nowhere later than where it was loaded, whatever the clocks of the processes say.
 * Without Redis each process has its own cache, and nobody waits.
 *
 * What is too large for Redis, or cannot be read, counts as not there.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { RedisConnection } from '../shared/redis.ts'
import type { ExpiringCache } from './expiring-cache.ts'
import { createRedisSlots, type StoredValue } from './redis-slots.ts'

/** When a value was made and when it ends, in Unix milliseconds. */
export interface Lifetime {
  createdAt: number
  expiresAt: number
}

/** A value as bytes, without its lifetime. `decode` rejects what it cannot read. */
export interface Codec<Value extends Lifetime> {
  encode(value: Value): Promise<Buffer>
  decode(bytes: Buffer, lifetime: Lifetime): Promise<Value>
}

export interface SharedCacheDependencies<Value extends Lifetime> {
  connection: RedisConnection
  /** Stands before every key: caches that share it share their values. */
  keyPrefix: string
  codec: Codec<Value>
  /** In front, for this process alone. */
  own: ExpiringCache<Value>
  /** Larger values stay in the process. */
  valueBytesMax: number
  /** The clock of the values' times. */
  now: () => number
  /** A word that nobody else has. */
  newToken: () => string
  /** How long a process may load alone. Default 3000. */
  lockMs?: number
}

const lockMsDefault = 3000
const lookAgainMs = 25

/** Makes a cache over what Redis holds already. It never rejects because of Redis. */
export function createRedisSharedCache<Value extends Lifetime>(
  dependencies: SharedCacheDependencies<Value>,
): ExpiringCache<Value> {
  const { codec, own, valueBytesMax, now, newToken, lockMs = lockMsDefault } = dependencies
  const slots = createRedisSlots({ ...dependencies, lockMs })
  const looksMax = Math.ceil((2 * lockMs) / lookAgainMs)

  /** The value, or nothing: then it is for the caller to load it, under the lock where that could be had. */
  async function findOrClaim(key: string, token: string): Promise<Value | undefined> {
    for (let look = 1; look <= looksMax; look++) {
      const found = await slots.claim(key, token)
      if (typeof found === 'object') return read(found)
      if (found !== 'locked') return undefined
      await delay(lookAgainMs)
    }
    return undefined
  }

  /** Answers with what all answer: this value, or the one that another process has stored before. */
  async function store(key: string, token: string, value: Value): Promise<Value> {
    const { createdAt, expiresAt } = value
    const bytes = now() < expiresAt ? withLife(expiresAt - createdAt, await codec.encode(value)) : undefined
    if (bytes === undefined || bytes.length > valueBytesMax) {
      await slots.release(key, token)
      return value
    }
    const kept = await slots.store(key, { bytes, expiresAt })
    if (kept === 'away') return value
    return kept.bytes === bytes ? { ...value, expiresAt: kept.expiresAt } : ((await read(kept)) ?? value)
  }

  async function read({ bytes, expiresAt }: StoredValue): Promise<Value | undefined> {
    try {
      const createdAt = expiresAt - bytes.readUInt32BE()
      return await codec.decode(bytes.subarray(lifeBytes), { createdAt, expiresAt })
    } catch {
      return undefined
    }
  }

  async function loadShared(key: string, load: () => Promise<Value>): Promise<Value> {
    const token = newToken()
    const found = await findOrClaim(key, token)
    if (found !== undefined) return found
    try {
      return await store(key, token, await load())
    } catch (error) {
      await slots.release(key, token)
      throw error
    }
  }

  return { get: (key, load) => own.get(key, () => loadShared(key, load)) }
}

const lifeBytes = 4

/** How long the value lives stands before it, in milliseconds: with what Redis says is left, that tells its age. */
function withLife(lifeMs: number, bytes: Buffer): Buffer {
  const life = Buffer.alloc(lifeBytes)
  life.writeUInt32BE(lifeMs)
  return Buffer.concat([life, bytes])
}
