/**
 * Cache entries in Redis. A key holds a value until it expires, or the lock of the process that loads the value. Each
 * step is one round trip. A stored value stays the only one until it expires.
 *
 * Times are in the clock of this process. The clock of Redis may differ, so Redis returns how much time is left.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Result } from 'ioredis'
import { type RedisConnection, type RedisTime, RedisUnavailableError } from '../../shared/redis/connection.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    cacheEntryLockBuffer(key: string, ...parameters: (string | number | Buffer)[]): Result<unknown, Context>
  }
}

export interface StoredValue {
  bytes: Buffer
  /** Unix milliseconds; not later than the value expires in Redis. */
  expiresAt: number
}

export interface CacheEntryLock {
  /** Returns the value; or `claimed` if this token now has the lock; or `locked` if another token has it. */
  claim(key: string, token: string): Promise<StoredValue | 'claimed' | 'locked' | 'unavailable'>
  /**
   * Stores the value, with or without the lock. Returns what Redis keeps: these same bytes, or bytes stored earlier.
   */
  store(key: string, value: StoredValue): Promise<StoredValue | 'unavailable'>
  /** Releases the lock if this token still has it. */
  release(key: string, token: string): Promise<void>
}

export interface CacheEntryLockDependencies {
  connection: RedisConnection
  keyPrefix: string
  lockMs: number
  /** Unix milliseconds. */
  now: () => number
}

/** Creates the entries of one cache. No step rejects if Redis is unavailable. */
export function createCacheEntryLock({
  connection,
  keyPrefix,
  lockMs,
  now,
}: CacheEntryLockDependencies): CacheEntryLock {
  connection.defineCommand(
    'cacheEntryLock',
    readFileSync(new URL('cache-entry-lock.lua', import.meta.url), 'utf8'),
  )

  async function ask(
    key: string,
    parametersAt: (time: RedisTime) => (string | number | Buffer)[],
  ): Promise<Answer | undefined> {
    // A key may be as long as a request, and may contain what must not be visible in Redis. So it is hashed.
    const redisKey = keyPrefix + hash('sha256', key, 'base64url')
    const askedAt = now()
    try {
      const reply = await connection.run((redis, time) =>
        redis.cacheEntryLockBuffer(redisKey, ...parametersAt(time)),
      )
      return answerOf(reply, askedAt)
    } catch (error) {
      if (error instanceof RedisUnavailableError) return undefined
      throw error
    }
  }

  return {
    async claim(key, token) {
      const answer = await ask(key, () => ['claim', token, lockMs])
      if (answer?.kind === 'value') return answer
      return answer?.kind === 'claimed' || answer?.kind === 'locked' ? answer.kind : 'unavailable'
    },

    async store(key, { bytes, expiresAt }) {
      // Send a moment, not a duration: if Redis runs the command late, the value still expires in time.
      const answer = await ask(key, ({ earliest }) => {
        return ['store', bytes, Math.floor(earliest + expiresAt - now())]
      })
      if (answer?.kind === 'value') return answer
      if (answer?.kind !== 'stored') return 'unavailable'
      return { bytes, expiresAt: Math.min(expiresAt, answer.expiresAt) }
    },

    async release(key, token) {
      await ask(key, () => ['release', token])
    },
  }
}

type Answer =
  | { kind: 'value'; bytes: Buffer; expiresAt: number }
  | { kind: 'stored'; expiresAt: number }
  | { kind: 'claimed' | 'locked' | 'done' }

// The time left was measured by Redis after this process asked, so counting it from the time of asking never exceeds
// it.
function answerOf(reply: unknown, askedAt: number): Answer {
  const [kind, bytes, leftMs] = Array.isArray(reply) ? reply : []
  const expiresAt = askedAt + Number(leftMs)
  switch (String(kind)) {
    case 'value':
      return { kind: 'value', bytes, expiresAt }
    case 'stored':
      return { kind: 'stored', expiresAt }
    case 'claimed':
      return { kind: 'claimed' }
    case 'locked':
      return { kind: 'locked' }
    default:
      return { kind: 'done' }
  }
}
