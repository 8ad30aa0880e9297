/**
 * The query service: key ring, limiters, caches and the HTTP app, wired to tables.
 *
 * The same assembly answers in the embedded process and in processes of its own; what differs comes in.
 */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../shared/config.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createQueryApp } from './app.ts'
import { createKeyRing, defaultKeyRingOptions, type KeyRing } from './key-ring.ts'
import { defaultQueryAppOptions } from './options.ts'
import type { RateLimiter, RateLimiters } from './rate-limiter.ts'
import { createMemoryRateLimiter } from './rate-limiter-memory.ts'
import type { ResponseCache } from './response-cache.ts'
import { createMemoryResponseCache } from './response-cache-memory.ts'

export interface QueryServiceDependencies {
  tables: Tables
  databases: Databases
  config: Config
  /** The pepper under which the secrets of API keys were hashed. */
  keyPepper: string
  limiters: RateLimiters
  cache: ResponseCache
  metrics: Metrics
  logger: Logger
}

export interface QueryService {
  /** Not listening yet. */
  app: FastifyInstance
  keyRing: KeyRing
  close(): Promise<void>
}

const windowMs = 60_000
const bucketsMax = 100_000

/** Loads the keys and makes the app. */
export async function startQueryService(dependencies: QueryServiceDependencies): Promise<QueryService> {
  const { tables, databases, config, metrics, logger } = dependencies
  const keyRing = createKeyRing({
    tables,
    databases,
    options: defaultKeyRingOptions,
    now: Date.now,
    onError: error => logger.error({ error: String(error) }, 'the keys could not be read'),
  })
  await keyRing.start()
  const app = createQueryApp({
    tables,
    databases,
    keyRing,
    limiters: dependencies.limiters,
    cache: dependencies.cache,
    options: {
      ...defaultQueryAppOptions,
      pepper: dependencies.keyPepper,
      platformCurrency: config.PLEDGEVIEW_PLATFORM_CURRENCY,
      commitHorizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      listCacheMs: config.PLEDGEVIEW_CACHE_MS,
      detailCacheMs: config.PLEDGEVIEW_CACHE_MS,
      statsCacheMs: config.PLEDGEVIEW_STATS_CACHE_MS,
      snapshotBytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX,
      connectionsMax: config.PLEDGEVIEW_CONNECTIONS_MAX,
      trustProxy: config.PLEDGEVIEW_TRUST_PROXY,
    },
    now: Date.now,
    logger,
    onRequestDone: ({ method, route, status, elapsedMs }) => {
      metrics.requests.inc({ method, route, status })
      metrics.requestSeconds.observe({ route }, elapsedMs / 1000)
    },
  })
  return {
    app,
    keyRing,
    async close() {
      await app.close()
      await keyRing.close()
    },
  }
}

/** The limiters of a service that is one process. */
export function memoryLimiters(config: Config): RateLimiters {
  return {
    keys: memoryLimiter(config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX),
    addresses: memoryLimiter(config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX),
  }
}

/** The cache of a service that is one process. */
export function memoryCache(config: Config): ResponseCache {
  return createMemoryResponseCache({ bytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX, now: Date.now })
}

function memoryLimiter(limit: number): RateLimiter {
  // Unix time that never runs backwards: a clock that is set back must not hold windows closed.
  const now = () => Math.floor(performance.timeOrigin + performance.now())
  return createMemoryRateLimiter({ limit, windowMs }, { bucketsMax, now })
}
