/**
 * The query service: key ring, limiters, caches and the HTTP app, wired to tables.
 *
 * The same assembly answers in the embedded process and in processes of its own; what differs comes in.
 */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Check } from '../shared/checks.ts'
import { closeServer } from '../shared/close-server.ts'
import type { Config } from '../shared/config.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createQueryApp } from './app.ts'
import type { SnapshotCache } from './campaign-lists.ts'
import type { RequestDone } from './http/request-log.ts'
import { createKeyRing, defaultKeyRingOptions, type KeyRing } from './key-ring.ts'
import { defaultQueryAppOptions } from './options.ts'
import type { RateLimiter, RateLimiters } from './rate-limiter.ts'
import { createMemoryRateLimiter } from './rate-limiter-memory.ts'
import { openRedisParts } from './redis-parts.ts'
import type { ResponseCache } from './response-cache.ts'
import { createMemoryResponseCache } from './response-cache-memory.ts'

export interface QueryServiceDependencies {
  tables: Tables
  databases: Databases
  config: Config
  /** The pepper under which the secrets of API keys were hashed. */
  keyPepper: string
  parts: QueryParts
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
const metersMax = 1_000

/** Loads the keys and makes the app. */
export async function startQueryService(dependencies: QueryServiceDependencies): Promise<QueryService> {
  const { tables, databases, config, parts, metrics, logger } = dependencies
  const keyRing = createKeyRing({
    tables,
    databases,
    options: defaultKeyRingOptions,
    now: Date.now,
    onError: oncePerMinute(error => logger.error({ error: String(error) }, 'the keys could not be read')),
  })
  await keyRing.start()
  const app = createQueryApp({
    tables,
    databases,
    keyRing,
    limiters: parts.limiters,
    cache: parts.cache,
    ...(parts.snapshots && { snapshots: parts.snapshots }),
    options: {
      ...defaultQueryAppOptions,
      pepper: dependencies.keyPepper,
      platformCurrency: config.PLEDGEVIEW_PLATFORM_CURRENCY,
      commitHorizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      listCacheMs: config.PLEDGEVIEW_CACHE_MS,
      detailCacheMs: config.PLEDGEVIEW_CACHE_MS,
      statsCacheMs: config.PLEDGEVIEW_STATS_CACHE_MS,
      snapshotBytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX,
      indexCampaignsMax: config.PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX,
      connectionsMax: config.PLEDGEVIEW_CONNECTIONS_MAX,
      trustProxy: config.PLEDGEVIEW_TRUST_PROXY,
    },
    now: Date.now,
    logger,
    onRequestDone: requestMeter(metrics),
  })
  return {
    app,
    keyRing,
    async close() {
      await closeServer(app)
      await keyRing.close()
      parts.close()
    },
  }
}

/** What fails at every look is said once a minute. */
function oncePerMinute(say: (error: unknown) => void): (error: unknown) => void {
  let saidAt = Number.NEGATIVE_INFINITY
  return error => {
    if (performance.now() - saidAt < 60_000) return
    saidAt = performance.now()
    say(error)
  }
}

/** Counts requests. A metric is looked up by its labels once, not for every request: that is what counting costs. */
function requestMeter({ requests, requestSeconds }: Metrics): (done: RequestDone) => void {
  const meters = new Map<string, { count: () => void; observe: (seconds: number) => void }>()
  return ({ method, route, status, elapsedMs }) => {
    const name = `${method} ${route} ${status}`
    let meter = meters.get(name)
    if (!meter) {
      const counter = requests.labels(method, route, String(status))
      const histogram = requestSeconds.labels(route)
      meter = { count: () => counter.inc(), observe: seconds => histogram.observe(seconds) }
      // Methods are the clients' choice: whoever makes them up must not fill the memory.
      if (meters.size < metersMax) meters.set(name, meter)
    }
    meter.count()
    meter.observe(elapsedMs / 1000)
  }
}

/** What the service limits and caches with: alone in its process, or shared with others. */
export interface QueryParts {
  limiters: RateLimiters
  cache: ResponseCache
  snapshots?: SnapshotCache
  /** What an operator is told. */
  check(): Check
  close(): void
}

/** The parts of a service that is one process. */
export function memoryParts(config: Config): QueryParts {
  return {
    limiters: {
      keys: memoryLimiter(config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX),
      addresses: memoryLimiter(config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX),
    },
    cache: createMemoryResponseCache({ bytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX, now: Date.now }),
    check: () => ({ ok: true, detail: 'in this process' }),
    close: () => {},
  }
}

/** The parts of services that share a Redis. They start, and go on, without it. */
export function redisParts(url: string, config: Config, metrics: Metrics, logger: Logger): QueryParts {
  return openRedisParts(
    {
      url,
      keyPrefix: config.PLEDGEVIEW_REDIS_PREFIX,
      keys: { limit: config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX, windowMs },
      addresses: { limit: config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX, windowMs },
      bucketsMax,
      cacheBytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX,
    },
    {
      logger,
      now: Date.now,
      monotonicNow: () => performance.now(),
      random: Math.random,
      newToken: randomUUID,
      onChange: (connection, isUp) => metrics.redisUp.set({ connection }, isUp ? 1 : 0),
    },
  )
}

function memoryLimiter(limit: number): RateLimiter {
  // Unix time that never runs backwards: a clock that is set back must not hold windows closed.
  const now = () => Math.floor(performance.timeOrigin + performance.now())
  return createMemoryRateLimiter({ limit, windowMs }, { bucketsMax, now })
}
