/**
 * The limiters of a query process, and what its caches share: nothing in a process that runs alone, and everything through Redis
 * where several run.
 *
 * Limits and caches use separate connections. So a large snapshot on its way does not delay a rate-limit check, and the
 * limiter can have a shorter deadline. While Redis is unavailable, each process works alone. Redis therefore never
 * makes a process unready; its state is reported for the operator only.
 */
import { randomUUID } from 'node:crypto'
import type { Config } from '../runtime/config.ts'
import type { Check } from '../runtime/ops/checks.ts'
import { createRedisConnection, evictionFault, type RedisSettings } from '../runtime/redis/connection.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { LoadShared } from './cache/cache.ts'
import { type CacheEntry, responses } from './cache/response-cache.ts'
import { createSharedValues } from './cache/shared-values.ts'
import { type Snapshot, snapshotBudget, snapshots } from './lists/campaign-lists.ts'
import {
  createMemoryRateLimiter,
  type RateLimiter,
  type RateLimiterSettings,
  type RateLimiters,
} from './rate-limit/rate-limiter.ts'
import { createRedisRateLimiter } from './rate-limit/rate-limiter-redis.ts'

export interface SharedState {
  limiters: RateLimiters
  /** What processes share of their caches. */
  caches?: { responses: LoadShared<CacheEntry>; snapshots: LoadShared<Snapshot> }
  /**
   * Reports whether limits and caches are shared at present, and what is wrong with Redis's eviction policy. Always ok,
   * because the service works without Redis.
   */
  check(): Check
  close(): void
}

const windowMs = 60_000
// Of each limiter, in this process.
const bucketsMax = 100_000

/** The limiters of a process. `create` makes each from its settings. */
function limitersOf(
  { PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: perKey, PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX: perAddress }: Config,
  create: (settings: RateLimiterSettings, kind: keyof RateLimiters) => RateLimiter,
): RateLimiters {
  return {
    keys: create({ limit: perKey, windowMs }, 'keys'),
    addresses: create({ limit: perAddress, windowMs }, 'addresses'),
  }
}

/** The limiters of a service that runs as a single process. It shares nothing. */
export function memoryState(config: Config): SharedState {
  // If the system clock is set back, the windows must not stay full until it has caught up.
  const now = () => Math.floor(performance.now())
  return {
    limiters: limitersOf(config, settings => createMemoryRateLimiter(settings, { bucketsMax, now })),
    check: () => ({ ok: true, detail: 'in this process' }),
    close: () => {},
  }
}

export interface RedisStateSettings extends Pick<RedisSettings, 'url' | 'reconnectMsMax'> {
  /**
   * Names the tables that answers come from (`readTablesId`). While query processes turn over to other tables, both read the same Redis:
   * an answer of one must not become the answer of the other, because each has its own stamps.
   */
  tablesId: string
  /** How long a request waits for a rate-limit decision of Redis. Default 150. */
  limitMsMax?: number
  /** How long a request waits for a response or a snapshot from Redis. Default 500. */
  cacheMsMax?: number
}

// Of one response, and of one compressed snapshot: one of a million campaigns takes about 13 MB.
const answerBytesMax = 4 * 1024 * 1024
const snapshotBytesMax = 32 * 1024 * 1024

/**
 * The limiters and caches of processes that share a Redis. Processes with the same prefix share their limits, and those on the same
 * tables their caches. They start and go on without Redis if it is unavailable. Throws only if the URL is invalid.
 */
export function redisState(
  { tablesId, limitMsMax = 150, cacheMsMax = 500, ...settings }: RedisStateSettings,
  config: Config,
  { now, monotonicMs, random, logger, metrics }: Omit<Runtime, 'sleep'>,
): SharedState {
  const keyPrefix = config.PLEDGEVIEW_REDIS_PREFIX
  const connect = (name: 'limits' | 'caches', deadlineMs: number) =>
    createRedisConnection(
      { ...settings, name, deadlineMs },
      {
        now: monotonicMs,
        random,
        logger,
        onChange: isUp => metrics.redisUp.set({ connection: name }, isUp ? 1 : 0),
      },
    )
  const limits = connect('limits', limitMsMax)
  let fault: string | undefined
  limits.onUp(async () => {
    // Some hosted services forbid INFO.
    const info = await limits.run(redis => redis.info('memory').catch(() => '')).catch(() => '')
    fault = evictionFault(info)
    if (fault !== undefined) logger.warn(fault)
  })
  const caches = connect('caches', cacheMsMax)

  const limiters = limitersOf(config, (settings, kind) =>
    createRedisRateLimiter(settings, {
      ...{ connection: limits, bucketsMax, now: monotonicMs },
      keyPrefix: `${keyPrefix}limit:${kind}:`,
      instance: randomUUID().slice(0, 8),
    }),
  )
  const sharing = { connection: caches, keyPrefix: `${keyPrefix}${tablesId}:`, now }

  return {
    limiters,
    caches: {
      responses: createSharedValues(responses, { ...sharing, valueBytesMax: answerBytesMax }),
      snapshots: createSharedValues(snapshots, {
        ...sharing,
        valueBytesMax: snapshotBytesMax,
        mayStore: snapshotBudget({ monotonicMs }),
      }),
    },

    check() {
      const detail = [
        ...(limits.isUp() ? [] : ['Redis does not answer']),
        `limits are ${limits.isUp() ? 'shared' : "this process's own"}`,
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
