/**
 * Sliding-window logs in Redis, one per bucket for all processes. Each request is one round trip and one atomic step.
 *
 * Each hit has an id, so it counts once even if Redis receives it several times. If Redis runs a hit after its
 * deadline, when the process has stopped waiting, the hit does not count.
 *
 * Redis never evicts a window, unless its policy is one of allkeys-*: see the script.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Result } from 'ioredis'
import type { RedisConnection } from '../../runtime/redis/connection.ts'
import type { RateLimiterSettings } from './rate-limiter.ts'
import type { WindowState } from './sliding-window-log.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    slidingWindowLog(
      key: string,
      windows: string,
      ...parameters: (string | number)[]
    ): Result<unknown, Context>
  }
}

/** The state of a window in Redis, and Redis's clock at that moment, in Unix milliseconds. */
export interface RedisWindowState extends WindowState {
  time: number
}

export interface RedisSlidingWindowLog {
  /**
   * Admits and counts the hit that the process made at `time`. No two hits of a process have the same time. `lacking`: the times of hits
   * that were admitted before, and that Redis may lack.
   */
  take(bucket: string, time: number, lacking: readonly number[]): Promise<RedisWindowState>
  /** By how much Redis's clock was ahead of the process's clock at the last request. */
  aheadMs(): number
}

export interface RedisSlidingWindowLogDependencies {
  connection: RedisConnection
  keyPrefix: string
  /** Distinguishes the hits of this process from those of others. */
  instance: string
  /** The process's clock, in milliseconds. */
  now: () => number
}

/** Creates the shared logs. Every method rejects if the connection does. */
export function createRedisSlidingWindowLog(
  { limit, windowMs }: RateLimiterSettings,
  { connection, keyPrefix, instance, now }: RedisSlidingWindowLogDependencies,
): RedisSlidingWindowLog {
  connection.defineCommand(
    'slidingWindowLog',
    readFileSync(new URL('sliding-window-log-redis.lua', import.meta.url), 'utf8'),
    { keys: 2 },
  )
  // No digest of a bucket is as short.
  const windows = `${keyPrefix}windows`
  let aheadMs = 0

  return {
    take: (bucket, time, lacking) =>
      connection.run(async (redis, { latest }) => {
        aheadMs = latest - now()
        const deadline = Math.ceil(latest + connection.deadlineMs)
        // Round up, so that a hit never leaves the window in Redis before it leaves the local window.
        const hits = lacking.flatMap(one => [idOf(instance, one), Math.ceil(one + aheadMs)])
        const parameters = [limit, windowMs, deadline, idOf(instance, time), ...hits]
        return stateOf(await redis.slidingWindowLog(keyPrefix + digest(bucket), windows, ...parameters))
      }),

    aheadMs: () => aheadMs,
  }
}

/** The microsecond of the hit in base 36: Redis stores one id per hit, so it should be short. */
function idOf(instance: string, time: number): string {
  return `${instance}:${Math.round(time * 1000).toString(36)}`
}

/** Buckets are API keys and addresses. Hash them, so that they do not appear in Redis's list of keys. */
function digest(bucket: string): string {
  return hash('sha256', bucket, 'base64url').slice(0, 22)
}

function stateOf(reply: unknown): RedisWindowState {
  const [verdict, count, blockedBy, time] = Array.isArray(reply) ? reply.map(Number) : []
  if (verdict === undefined || count === undefined || blockedBy === undefined || time === undefined) {
    throw new Error('the script of the rate limiter returned an unexpected reply')
  }
  if (verdict < 0) throw new Error('Redis ran a hit after its deadline')
  return { allowed: verdict === 1, count, blockedBy, time }
}
