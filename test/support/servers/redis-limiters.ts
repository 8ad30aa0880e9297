/** Limiters over one Redis, as in several processes: each has its own connection and local window. */
import { hash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, vi } from 'vitest'
import type { RateLimiter, RateLimiterSettings } from '../../../services/query/rate-limit/rate-limiter.ts'
import { createRedisRateLimiter } from '../../../services/query/rate-limit/rate-limiter-redis.ts'
import { connectTo, newPrefix, type TestRedis } from './redis.ts'

export interface TestLimiter extends RateLimiter {
  /** Whether Redis decides at present, and not this process alone. */
  isShared(): boolean
}

const waiting = { timeout: 20_000, interval: 5 }

/** Opens the limiters. Resolves when Redis decides for all of them. */
export async function openLimiters<Count extends 1 | 2>(
  redis: Pick<TestRedis, 'url'>,
  count: Count,
  settings: RateLimiterSettings,
  { deadlineMs }: { deadlineMs?: number } = {},
) {
  const keyPrefix = newPrefix()
  const open = () => {
    const connection = connectTo(redis, deadlineMs === undefined ? {} : { deadlineMs })
    const instance = randomBytes(4).toString('hex')
    const parts = { connection, keyPrefix, instance, bucketsMax: 1000, now: () => performance.now() }
    const limiter = createRedisRateLimiter(settings, parts)
    return { limiter: { ...limiter, isShared: connection.isUp }, connection }
  }
  const opened = Array.from({ length: count }, open)
  const limiters = opened.map(({ limiter }) => limiter)
  await untilShared(limiters)
  return {
    limiters: limiters as unknown as Count extends 1 ? [TestLimiter] : [TestLimiter, TestLimiter],
    keyPrefix,
    /** The key of the bucket in Redis. */
    keyOf: (bucket: string) => keyPrefix + hash('sha256', bucket, 'base64url').slice(0, 22),
    async close(): Promise<void> {
      for (const { connection } of opened) connection.close()
    },
  }
}

/** Resolves when Redis decides for all of these limiters. */
export function untilShared(limiters: readonly TestLimiter[]): Promise<void> {
  return vi.waitFor(() => expect(limiters.every(limiter => limiter.isShared())).toBe(true), waiting)
}

/** Resolves when Redis decides for none of these limiters. */
export function untilAlone(limiters: readonly TestLimiter[]): Promise<void> {
  return vi.waitFor(() => expect(limiters.some(limiter => limiter.isShared())).toBe(false), waiting)
}

/** The clock of Redis, in Unix milliseconds. */
export async function redisNow({ client }: Pick<TestRedis, 'client'>): Promise<number> {
  const [seconds, micros] = await client.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}

/** Resolves when the clock of Redis has reached this time. */
export async function untilRedisSays(redis: Pick<TestRedis, 'client'>, time: number): Promise<void> {
  for (let left = 1; left > 0; ) {
    left = time - (await redisNow(redis))
    if (left > 0) await delay(left)
  }
}
