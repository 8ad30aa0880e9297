/**
 * What query processes share through Redis: limits, answers and snapshots.
 *
 * Limits and caches have a connection each, so that a large snapshot on its way holds up no request, and so that the
 * limiter can be the more impatient of the two. While Redis is away everything goes on in the process alone, so this
 * never makes a process unready; what it says of Redis is for the eyes of an operator.
 */
import type { Logger } from 'pino'
import type { Check } from '../shared/checks.ts'
import { createRedisConnection, type RedisSettings } from '../shared/redis.ts'
import type { SnapshotCache } from './campaign-lists.ts'
import type { RateLimiterSettings, RateLimiters } from './rate-limiter.ts'
import { createRedisRateLimiter } from './rate-limiter-redis.ts'
import type { ResponseCache } from './response-cache.ts'
import { createRedisResponseCache } from './response-cache-redis.ts'
import { createRedisSnapshotCache } from './snapshot-cache-redis.ts'

export interface RedisPartsSettings extends Pick<RedisSettings, 'url' | 'tls' | 'reconnectMsMax'> {
  /** Stands before every key. Processes share what they have in common where they share this. */
  keyPrefix: string
  /** What a request may wait for a Redis that does not answer. Default 150. */
  limitMsMax?: number
  /** What a request may wait for an answer or a snapshot out of Redis. Default 500. */
  cacheMsMax?: number
  keys: RateLimiterSettings
  addresses: RateLimiterSettings
  /** Buckets that each limiter keeps windows of in this process. */
  bucketsMax: number
  /** Bound on the answers, and on the snapshots, that are kept in this process. */
  cacheBytesMax: number
  /** Bound on one answer in Redis. Default 4 MiB. */
  answerBytesMax?: number
  /** Bound on one snapshot in Redis, compressed; one of a million campaigns takes some 13 MB. Default 32 MiB. */
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
  /** A word that nobody else has. */
  newToken: () => string
  /** Called whenever one of the connections comes up or goes down, for the metrics. */
  onChange?: (connection: 'limits' | 'caches', isUp: boolean) => void
}

export interface RedisParts {
  limiters: RateLimiters
  cache: ResponseCache
  snapshots: SnapshotCache
  /** Whether Redis is reached, waiting for it for at most so long: for a start that need not begin alone. */
  whenUp(msMax: number): Promise<boolean>
  /** Whether everything is shared at present. Always ok: Redis is not needed to serve. */
  check(): Check
  close(): void
}

const limitMsMaxDefault = 150
const cacheMsMaxDefault = 500
const answerBytesMaxDefault = 4 * 1024 * 1024
const snapshotBytesMaxDefault = 32 * 1024 * 1024
const instanceLength = 8

/** Starts to connect. Throws only where the URL is none. */
export function openRedisParts(
  settings: RedisPartsSettings,
  { logger, now, monotonicNow, random, newToken, onChange }: RedisPartsDependencies,
): RedisParts {
  const { keyPrefix, bucketsMax, limitMsMax, cacheMsMax, answerBytesMax, snapshotBytesMax } = settings
  const connect = (name: 'limits' | 'caches', deadlineMs: number) =>
    createRedisConnection(
      { ...settings, name, deadlineMs },
      { now: monotonicNow, random, logger, onChange: isUp => onChange?.(name, isUp) },
    )
  const limits = connect('limits', limitMsMax ?? limitMsMaxDefault)
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
  const sharing = { connection: caches, keyPrefix, bytesMax: settings.cacheBytesMax, now, newToken }

  return {
    limiters,
    cache: createRedisResponseCache({ ...sharing, valueBytesMax: answerBytesMax ?? answerBytesMaxDefault }),
    snapshots: createRedisSnapshotCache({
      ...sharing,
      valueBytesMax: snapshotBytesMax ?? snapshotBytesMaxDefault,
    }),

    async whenUp(msMax) {
      const isUp = await Promise.all([limits.whenUp(msMax), caches.whenUp(msMax)])
      return isUp.every(Boolean)
    },

    check() {
      const areLimitsShared = limiters.keys.isShared() && limiters.addresses.isShared()
      const detail = [
        `limits are ${areLimitsShared ? 'shared' : "this process's own"}`,
        `caches are ${caches.isUp() ? 'shared' : "this process's own"}`,
      ]
      return { ok: true, detail: detail.join(', ') }
    },

    close() {
      limits.close()
      caches.close()
    },
  }
}
