/**
 * The values of a cache that all processes share through Redis. A key holds a value until it expires, or the lock of the process
 * that loads the value. Each step is one round trip (shared-value.lua).
 *
 * Promises while Redis is available:
 * - Within one period, every process returns the same value for a key: the first one stored. If a process has loaded
 *   another value meanwhile, it returns the stored one.
 * - One process loads at a time, and the others wait. If it holds the lock for longer than the lock period, because it
 *   is slow or because it crashed, another process takes over. A process that has waited for two lock periods loads the
 *   value without a lock.
 * - A value never lives longer in another process than in the process that loaded it, whatever the clocks say: Redis returns how
 *   much time is left. If that is more than its lifetime, the clock of Redis was set back, and the value counts as missing.
 *
 * If Redis is unavailable, each process uses its own cache and does not wait.
 *
 * A value that is too large for Redis, or that cannot be decoded, counts as missing.
 */
import { hash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from 'ioredis'
import type { RedisConnection, RedisTime } from '../../runtime/redis/connection.ts'
import { type CacheKind, isOfTheFuture, type Lifetime, type LoadShared } from './cache.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    sharedValueBuffer(
      key: string,
      ...parameters: (string | number | Buffer)[]
    ): Result<[kind: Buffer, bytes?: Buffer, leftMs?: number], Context>
  }
}

export interface SharedValuesSettings<Value> {
  connection: RedisConnection
  /** Begins every key. Processes with the same prefix share their values. */
  keyPrefix: string
  /** Larger values stay in this process. */
  valueBytesMax: number
  /** Whether this owner may store the value in Redis. Otherwise it stays in this process. Default: yes. */
  mayStore?: (value: Value, owner: string) => boolean
  /** The clock of the values' times. */
  now: () => number
  /** How long a process holds the lock while it loads a value. Default 3000. */
  lockMs?: number
}

const lockMsDefault = 3000
const pollMs = 25

/** The values that Redis holds already, and those that will be loaded. It never rejects because of Redis. */
export function createSharedValues<Value extends Lifetime>(
  kind: CacheKind<Value>,
  settings: SharedValuesSettings<Value>,
): LoadShared<Value> {
  const { connection, keyPrefix, valueBytesMax, mayStore, now, lockMs = lockMsDefault } = settings
  const pollsMax = Math.ceil((2 * lockMs) / pollMs)
  connection.defineCommand('sharedValue', readFileSync(new URL('shared-value.lua', import.meta.url), 'utf8'))

  /** Sends one step to the script. Returns its answer, or `undefined` if Redis is unavailable. */
  async function ask(
    key: string,
    parametersAt: (time: RedisTime) => (string | number | Buffer)[],
  ): Promise<Answer | undefined> {
    // A key may be as long as a request, and may contain what must not be visible in Redis. So it is hashed.
    const redisKey = keyPrefix + kind.prefix + hash('sha256', key, 'base64url')
    const askedAt = now()
    const reply = await connection
      .run((redis, time) => redis.sharedValueBuffer(redisKey, ...parametersAt(time)))
      .catch(() => undefined)
    if (reply === undefined) return undefined
    const [said, bytes = Buffer.alloc(0), leftMs = 0] = reply
    // Redis measured the time left after this process asked, so counting it from then never exceeds it.
    return { kind: said.toString() as Answer['kind'], bytes, expiresAt: askedAt + leftMs }
  }

  /**
   * Returns the value, or `undefined`: the caller must then load it. The caller has the lock if it could be acquired.
   */
  async function findOrClaim(key: string, token: string): Promise<Value | undefined> {
    for (let poll = 1; poll <= pollsMax; poll++) {
      const found = await ask(key, () => ['claim', token, lockMs])
      if (found?.kind === 'value') {
        const value = await read(found)
        if (value !== undefined) return value
        // No process can use it, and Redis may keep it for long.
        await ask(key, () => ['drop'])
        continue
      }
      if (found?.kind !== 'locked') return undefined
      await delay(pollMs)
    }
    return undefined
  }

  const release = (key: string, token: string) => ask(key, () => ['release', token])

  /**
   * Stores the value. Returns the value that all processes use: this one, or one that another process stored earlier.
   */
  async function store(key: string, token: string, value: Value, owner: string): Promise<Value> {
    const isWanted = now() < value.expiresAt && (mayStore?.(value, owner) ?? true)
    const encoded = isWanted ? await kind.encode(value) : undefined
    if (encoded === undefined || encoded.body.length > valueBytesMax) {
      await release(key, token)
      return value
    }
    let sharedUntil = 0
    const kept = await ask(key, time => {
      sharedUntil = endOf(value, time)
      const { header, body } = encoded
      const lifetimeMs = value.expiresAt - value.createdAt
      return ['store', framed({ ...header, lifetimeMs, sharedUntil }, body), sharedUntil]
    })
    if (kept?.kind === 'value') return (await read(kept)) ?? value
    if (kept?.kind !== 'stored') return value
    return { ...value, expiresAt: Math.min(value.expiresAt, kept.expiresAt), sharedUntil }
  }

  // A moment, not a duration: if Redis runs the command late, the value still expires in time. The end that a value takes over is
  // bounded by its own time left, because Redis may have been replaced by one whose clock differs.
  function endOf({ expiresAt, sharedUntil }: Value, { earliest, latest }: RedisTime): number {
    const leftMs = expiresAt - now()
    if (sharedUntil === undefined) return Math.floor(earliest + leftMs)
    return Math.min(sharedUntil, Math.floor(latest + leftMs + connection.deadlineMs))
  }

  // Four bytes with the length of the header, the header as JSON, then the body as it is. With the time left that Redis returns,
  // the lifetime in the header gives the age of the value.
  function framed(header: object, body: Buffer): Buffer {
    const json = Buffer.from(JSON.stringify(header))
    const length = Buffer.alloc(lengthBytes)
    length.writeUInt32BE(json.length)
    return Buffer.concat([length, json, body])
  }

  async function read({ bytes, expiresAt }: Answer): Promise<Value | undefined> {
    try {
      const bodyAt = lengthBytes + bytes.readUInt32BE(0)
      const header = JSON.parse(bytes.toString('utf8', lengthBytes, bodyAt))
      const { lifetimeMs, sharedUntil }: { lifetimeMs: number; sharedUntil: number } = header
      const lifetime = { createdAt: expiresAt - lifetimeMs, expiresAt, sharedUntil }
      if (isOfTheFuture(lifetime, now())) return undefined
      // The body is a copy, so that it keeps no larger buffer alive.
      return await kind.decode(header, Buffer.copyBytesFrom(bytes, bodyAt), lifetime)
    } catch {
      return undefined
    }
  }

  return async (key, load, owner) => {
    const token = randomUUID()
    const found = await findOrClaim(key, token)
    if (found !== undefined) return found
    try {
      return await store(key, token, await load(), owner)
    } catch (error) {
      await release(key, token)
      throw error
    }
  }
}

const lengthBytes = 4

/** One of the answers in shared-value.lua, with the value that it may have. */
interface Answer {
  kind: 'value' | 'stored' | 'claimed' | 'locked' | 'done'
  bytes: Buffer
  /** In the clock of this process, and not later than the value expires in Redis. */
  expiresAt: number
}
