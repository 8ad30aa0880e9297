/**
 * The rate limiter over Redis: one window per bucket for all processes, and a local window in each process.
 *
 * Every hit is counted in the local window first. While Redis is available, Redis decides too, in one round trip. While
 * it is unavailable, the local window decides alone and at once. This promises:
 * - One process never admits more than the limit within any window, whatever happens to Redis.
 * - While Redis is available, all processes together never admit more than the limit. This holds when its memory is full
 *   too, unless its eviction policy is one of allkeys-*: then Redis may forget hits, and the operator is told so.
 * - While Redis is unavailable, each process that has lost it admits up to the limit.
 * - When Redis is back, it may lack hits: for one window, the first hit of each bucket takes along those that this process has admitted.
 *   Until each process has had such a hit, all together may admit what they might have admitted without Redis.
 */

import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Result } from 'ioredis'
import type { RedisConnection } from '../../runtime/redis/connection.ts'
import {
  createSlidingWindowLog,
  decisionOf,
  type RateDecision,
  type RateLimiter,
  type RateLimiterSettings,
} from './rate-limiter.ts'

interface RedisRateLimiterDependencies {
  connection: RedisConnection
  /** Prefix of every key. Limiters with the same prefix share their buckets. */
  keyPrefix: string
  /** A short name that is unique among all processes, and among all runs of this one. */
  instance: string
  /** The number of buckets that have a local window. */
  bucketsMax: number
  /** Milliseconds of a clock that never runs backwards. */
  now: () => number
}

/** Creates a limiter that decides alone until the connection is up. Hits never reject. */
export function createRedisRateLimiter(
  settings: RateLimiterSettings,
  { connection, keyPrefix, instance, bucketsMax, now }: RedisRateLimiterDependencies,
): RateLimiter {
  const { limit, windowMs } = settings
  connection.defineCommand(
    'slidingWindowLog',
    readFileSync(new URL('sliding-window-log-redis.lua', import.meta.url), 'utf8'),
    { keys: 2 },
  )
  // No digest of a bucket is as short.
  const windows = `${keyPrefix}windows`
  const local = createSlidingWindowLog(settings, bucketsMax)
  /** The time of the latest admitted hit, in whole microseconds. */
  let lastHitAt = Number.NEGATIVE_INFINITY
  /** Until this time, Redis may lack hits that count. */
  let incompleteUntil = Number.NEGATIVE_INFINITY
  /** The buckets of which it lacks none. */
  let complete = new Set<string>()
  /** The times of hits that Redis has not decided yet. */
  const undecided = new Set<number>()

  function mayLackHits(): void {
    incompleteUntil = now() + windowMs
    complete = new Set()
  }
  connection.onUp(mayLackHits)

  /** Decides by the local window. It never promises a shorter delay than Redis would. */
  const alone = (decision: RateDecision): RateDecision =>
    decision.remaining > 0 ? decision : { ...decision, delayMs: decision.delayMs + connection.deadlineMs }

  /**
   * Admits and counts the hit that the process made at `hitAt` in the sliding-window log that Redis has of this bucket for all processes:
   * one round trip, and one atomic step. Each hit has an id, so it counts once even if Redis receives it several times. If Redis runs a hit
   * after its deadline, when the process has stopped waiting, the hit does not count. Rejects if the connection does.
   */
  async function askRedis(bucket: string, hitAt: number): Promise<RateDecision> {
    const known = complete
    const mayLack = hitAt < incompleteUntil && !known.has(bucket)
    const lacking = mayLack ? local.times(bucket).filter(one => one !== hitAt && !undecided.has(one)) : []
    undecided.add(hitAt)
    try {
      const [verdict, count, blockedBy, time] = await connection.run(async (redis, { latest }) => {
        // Buckets are API keys and addresses. Hash them, so that they do not appear in Redis's list of keys.
        const key = keyPrefix + hash('sha256', bucket, 'base64url').slice(0, 22)
        const aheadMs = latest - now()
        const deadline = Math.ceil(latest + connection.deadlineMs)
        // Round up, so that a hit never leaves the window in Redis before it leaves the local window.
        const hits = lacking.flatMap(one => [idOf(instance, one), Math.ceil(one + aheadMs)])
        const parameters = [limit, windowMs, deadline, idOf(instance, hitAt), ...hits]
        const reply = await redis.slidingWindowLog(key, windows, ...parameters)
        if (reply[0] < 0) throw new Error('Redis ran a hit after its deadline')
        return reply
      })
      if (mayLack && known.size < bucketsMax) known.add(bucket)
      const allowed = verdict === 1
      if (!allowed) local.release(bucket, hitAt)
      return decisionOf(settings, { allowed, count, blockedBy, time })
    } finally {
      undecided.delete(hitAt)
    }
  }

  return {
    settings,

    async hit(bucket) {
      // Whole microseconds, later than every admitted hit: the time of a hit identifies it.
      const micros = Math.max(Math.floor(now() * 1000), lastHitAt + 1)
      const time = micros / 1000
      const decision = local.take(bucket, time)
      if (decision.allowed) lastHitAt = micros
      if (!connection.isUp() || !decision.allowed) return alone(decision)
      try {
        return await askRedis(bucket, time)
      } catch {
        // The connection may be up again already, and Redis may not have this hit.
        mayLackHits()
        return alone(decision)
      }
    },
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    slidingWindowLog(
      key: string,
      windows: string,
      ...parameters: (string | number)[]
    ): Result<[verdict: number, count: number, blockedBy: number, time: number], Context>
  }
}

/** The microsecond of the hit in base 36: Redis stores one id per hit, so it should be short. */
function idOf(instance: string, time: number): string {
  return `${instance}:${Math.round(time * 1000).toString(36)}`
}
