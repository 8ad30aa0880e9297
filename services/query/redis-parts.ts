/**
 * The limiters and caches that query processes share through Redis.
 *
 * Limits and caches use separate connections. So a large snapshot on its way does not delay a rate-limit check, and the
 * limiter can have a shorter deadline. While Redis is unavailable, each process works alone. Redis therefore never
 * makes a process unready; its state is reported for the operator only.
 */
import type { Logger } from 'pino'
import type { Check } from '../runtime/ops/checks.ts'
import { createRedisConnection, type RedisSettings } from '../runtime/redis/connection.ts'
import { evictionFault } from '../runtime/redis/eviction-policy.ts'
import type { LoadShared } from './cache/cache.ts'
import { type CacheEntry, responses } from './cache/response-cache.ts'
import { createSharedValues } from './cache/shared-values.ts'
import type { Snapshot } from './lists/campaign-lists.ts'
import { snapshotBudget, snapshots } from './lists/snapshots.ts'
import type { RateLimiterSettings, RateLimiters } from './rate-limit/rate-limiter.ts'
import { createRedisRateLimiter } from './rate-limit/rate-limiter-redis.ts'

export interface RedisPartsSettings extends Pick<RedisSettings, 'url' | 'tls' | 'reconnectMsMax'> {
  /** Prefix of every key. Processes with the same prefix share their limits, and those on the same tables their caches. */
  keyPrefix: string
  /**
   * Names the tables that answers come from. While query processes turn over to other tables, both read the same Redis: an answer of
   * one must not become the answer of the other, because each has its own stamps. Default: not named.
   */
  tablesId?: string
  /** How long a request waits for a rate-limit decision of Redis. Default 150. */
  limitMsMax?: number
  /** How long a request waits for a response or a snapshot from Redis. Default 500. */
  cacheMsMax?: number
  keys: RateLimiterSettings
  addresses: RateLimiterSettings
  /** The number of buckets that each limiter keeps in this process. */
  bucketsMax: number
  /** Size limit of one response in Redis. Default 4 MiB. */
  answerBytesMax?: number
  /** Size limit of one compressed snapshot in Redis. One of a million campaigns takes about 13 MB. Default 32 MiB. */
  snapshotBytesMax?: number
}

export interface RedisPartsDependencies {
  logger: Logger
  /** Unix milliseconds. */
  now: () => number
  /** Milliseconds of a clock that never runs backwards. */
  monotonicNow: () => number
  /** Between 0 and 1. */
  random: () => number
  /** Returns a token that is unique among all processes. */
  newToken: () => string
  /** Called whenever one of the connections comes up or goes down, for the metrics. */
  onChange?: (connection: 'limits' | 'caches', isUp: boolean) => void
}

/** What processes share of their caches. */
export interface SharedCaches {
  responses: LoadShared<CacheEntry>
  snapshots: LoadShared<Snapshot>
}

export interface RedisParts {
  limiters: RateLimiters
  shared: SharedCaches
  /**
   * Reports whether limits and caches are shared at present, and what is wrong with Redis's eviction policy. Always ok,
   * because the service works without Redis.
   */
  check(): Check
  close(): void
}

const limitMsMaxDefault = 150
const cacheMsMaxDefault = 500
const answerBytesMaxDefault = 4 * 1024 * 1024
const snapshotBytesMaxDefault = 32 * 1024 * 1024
const instanceLength = 8

/** Starts to connect. Throws only if the URL is invalid. */
export function openRedisParts(
  settings: RedisPartsSettings,
  { logger, now, monotonicNow, random, newToken, onChange }: RedisPartsDependencies,
): RedisParts {
  const { keyPrefix, tablesId, bucketsMax, limitMsMax, cacheMsMax, answerBytesMax, snapshotBytesMax } =
    settings
  const connect = (name: 'limits' | 'caches', deadlineMs: number) =>
    createRedisConnection(
      { ...settings, name, deadlineMs },
      { now: monotonicNow, random, logger, onChange: isUp => onChange?.(name, isUp) },
    )
  const limits = connect('limits', limitMsMax ?? limitMsMaxDefault)
  let fault: string | undefined
  limits.onUp(async () => {
    // Some hosted services forbid INFO.
    const info = await limits.run(redis => redis.info('memory').catch(() => '')).catch(() => '')
    fault = evictionFault(info)
    if (fault !== undefined) logger.warn(fault)
  })
  const caches = connect('caches', cacheMsMax ?? cacheMsMaxDefault)

  const limiter = (kind: 'keys' | 'addresses') =>
    createRedisRateLimiter(settings[kind], {
      connection: limits,
      keyPrefix: `${keyPrefix}limit:${kind}:`,
      instance: newToken().slice(0, instanceLength),
      bucketsMax,
      now: monotonicNow,
    })
  const limiters = { keys: limiter('keys'), addresses: limiter('addresses') }
  const sharing = {
    connection: caches,
    keyPrefix: tablesId === undefined ? keyPrefix : `${keyPrefix}${tablesId}:`,
    now,
    newToken,
  }

  return {
    limiters,
    shared: {
      responses: createSharedValues(responses, {
        ...sharing,
        valueBytesMax: answerBytesMax ?? answerBytesMaxDefault,
      }),
      snapshots: createSharedValues(snapshots, {
        ...sharing,
        valueBytesMax: snapshotBytesMax ?? snapshotBytesMaxDefault,
        mayStore: snapshotBudget(now),
      }),
    },

    check() {
      const areLimitsShared = limiters.keys.isShared() && limiters.addresses.isShared()
      const detail = [
        `limits are ${areLimitsShared ? 'shared' : "this process's own"}`,
        `caches are ${caches.isUp() ? 'shared' : "this process's own"}`,
        ...(fault === undefined ? [] : [fault]),
      ]
      return { ok: true, detail: detail.join(', ') }
    },

    close() {
      limits.close()
      caches.close()
    },
  }
}
