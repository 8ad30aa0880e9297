/**
 * The query service: key ring, limiters, caches and the HTTP app, wired to the tables.
 *
 * The embedded process and the separate query processes use this same wiring. What differs between them is passed in.
 */
import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { PublicAddresses } from '../../contracts/api/published-openapi.ts'
import type { Config } from '../runtime/config.ts'
import type { Check } from '../runtime/ops/checks.ts'
import { closeServer } from '../runtime/ops/close-server.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { sleep } from '../runtime/sleep.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { createQueryApp } from './app.ts'
import { createKeyRing, defaultKeyRingOptions, type KeyRing } from './auth/key-ring.ts'
import { defaultRevocationsOptions, withRevocations } from './auth/revocations.ts'
import { createCache, type OnLookup } from './cache/cache.ts'
import { responses } from './cache/response-cache.ts'
import type { RequestDone } from './http/request-log.ts'
import { snapshots } from './lists/snapshots.ts'
import { defaultQueryAppOptions, type QueryAppOptions } from './options.ts'
import type { RateLimiter, RateLimiters } from './rate-limit/rate-limiter.ts'
import { createMemoryRateLimiter } from './rate-limit/rate-limiter-memory.ts'
import { openRedisParts, type SharedCaches } from './redis-parts.ts'
import {
  createUsageRecorder,
  defaultUsageRecorderOptions,
  type UsageObserver,
} from './usage/usage-recorder.ts'

export interface QueryServiceDependencies {
  tables: Tables
  databases: Databases
  config: Config
  /** The pepper that was used to hash the secrets of the API keys. */
  keyPepper: string
  parts: QueryParts
  /** Where consumers find the API and the portal. Default: as configured. */
  addresses?: () => PublicAddresses
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

/** Loads the keys and creates the app. */
export async function startQueryService(dependencies: QueryServiceDependencies): Promise<QueryService> {
  const { tables, databases, config, parts, metrics, logger } = dependencies
  const onError = oncePerMinute(error => logger.error({ error: String(error) }, 'the keys could not be read'))
  const reading = { tables, databases, now: Date.now, sleep, onError }
  const readMsMax = config.PLEDGEVIEW_KEYS_READ_MS_MAX
  const keyRing = withRevocations(
    createKeyRing({ ...defaultKeyRingOptions, readMsMax }, reading),
    { ...defaultRevocationsOptions, readMsMax },
    reading,
  )
  const usage = createUsageRecorder({
    tables,
    databases,
    process: `query-${randomUUID()}`,
    options: defaultUsageRecorderOptions,
    now: Date.now,
    sleep,
    observer: usageMeter(metrics, logger),
  })
  usage.start()
  await keyRing.start()
  const options = appOptionsOf(config, dependencies.keyPepper)
  const app = createQueryApp({
    tables,
    databases,
    keyRing,
    limiters: parts.limiters,
    ...createCaches(config.PLEDGEVIEW_CACHE_BYTES_MAX, parts.shared, metrics),
    options,
    ahead: { sleep, random: Math.random },
    forgetting: { sleep },
    addresses: dependencies.addresses ?? (() => configuredAddresses(config)),
    now: Date.now,
    monotonicNow: () => performance.now(),
    logger,
    onRequestDone: requestMeter(metrics),
    onKeyAnswered: usage.count,
  })
  return {
    app,
    keyRing,
    async close() {
      await closeServer(app)
      await Promise.all([keyRing.close(), usage.close()])
      parts.close()
    },
  }
}

/** The options of the HTTP app. `pepper`: see `QueryAppOptions`. */
export function appOptionsOf(config: Config, pepper: string): QueryAppOptions {
  const statementMsMax = config.PLEDGEVIEW_QUERY_MS_MAX
  return {
    ...defaultQueryAppOptions,
    pepper,
    platformCurrency: config.PLEDGEVIEW_PLATFORM_CURRENCY,
    listCacheMs: config.PLEDGEVIEW_CACHE_MS,
    detailCacheMs: config.PLEDGEVIEW_CACHE_MS,
    statsCacheMs: config.PLEDGEVIEW_STATS_CACHE_MS,
    snapshotBytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX,
    indexCampaignsMax: config.PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX,
    connectionsMax: config.PLEDGEVIEW_CONNECTIONS_MAX,
    connectionsPerAddressMax: config.PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX,
    trustProxy: config.PLEDGEVIEW_TRUST_PROXY,
    statementMsMax,
    // Two statements may run, one after the other. A request that needs more time gets an error before this has passed.
    socketTimeoutMs: Math.max(defaultQueryAppOptions.socketTimeoutMs, 3 * statementMsMax),
  }
}

/** The caches, with their lookups counted in the metrics. `bytesMax`: of each. */
function createCaches(bytesMax: number, shared: SharedCaches | undefined, { cacheLookups }: Metrics) {
  function onLookup(cache: string): OnLookup {
    // The lookup of a metric by its labels is what makes counting slow.
    const hits = cacheLookups.labels(cache, 'hit')
    const misses = cacheLookups.labels(cache, 'miss')
    return (isHit, count = 1) => (isHit ? hits : misses).inc(count)
  }
  const settings = { bytesMax, now: Date.now }
  return {
    cache: createCache(responses, {
      ...settings,
      shared: shared?.responses,
      onLookup: onLookup('responses'),
    }),
    snapshots: createCache(snapshots, {
      ...settings,
      shared: shared?.snapshots,
      onLookup: onLookup('lists'),
    }),
    onRowLookup: onLookup('rows'),
  }
}

/** The public addresses that an operator has set. */
export function configuredAddresses(config: Config): PublicAddresses {
  return { apiUrl: config.PLEDGEVIEW_API_URL, portalUrl: config.PLEDGEVIEW_PORTAL_URL }
}

/** Reports a repeated error at most once a minute. */
function oncePerMinute(log: (error: unknown) => void): (error: unknown) => void {
  let loggedAt = Number.NEGATIVE_INFINITY
  return error => {
    if (performance.now() - loggedAt < 60_000) return
    loggedAt = performance.now()
    log(error)
  }
}

/**
 * Counts requests. It looks a metric up once per combination of labels, because the lookup is what makes counting slow.
 */
function requestMeter({ requests, requestSeconds }: Metrics): (done: RequestDone) => void {
  const meters = new Map<string, { count: () => void; observe: (seconds: number) => void }>()
  return ({ method, route, status, elapsedMs }) => {
    const name = `${method} ${route} ${status}`
    let meter = meters.get(name)
    if (!meter) {
      const counter = requests.labels(method, route, String(status))
      const histogram = requestSeconds.labels(route)
      meter = { count: () => counter.inc(), observe: seconds => histogram.observe(seconds) }
      // Clients choose the method, so a client that invents methods must not fill the memory.
      if (meters.size < metersMax) meters.set(name, meter)
    }
    meter.count()
    meter.observe(elapsedMs / 1000)
  }
}

function usageMeter(metrics: Metrics, logger: Logger): UsageObserver {
  const { usageFlushes, usageRows, usageSummedRows, usageLostRequests } = metrics
  return {
    flushed: isWritten => usageFlushes.inc({ outcome: isWritten ? 'written' : 'failed' }),
    state({ rows, summed, lost }) {
      usageRows.set(rows)
      usageSummedRows.inc(summed)
      usageLostRequests.inc(lost)
    },
    failed: oncePerMinute(error => {
      logger.warn({ error: String(error) }, 'the usage of keys could not be written; it is written later')
    }),
  }
}

/** The limiters of the service, and what its caches share: in this process only, or through Redis. */
export interface QueryParts {
  limiters: RateLimiters
  shared?: SharedCaches
  /** The state that is reported to an operator. */
  check(): Check
  close(): void
}

/** The limiters of a service that runs as a single process. It shares nothing. */
export function memoryParts(config: Config): QueryParts {
  return {
    limiters: {
      keys: memoryLimiter(config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX),
      addresses: memoryLimiter(config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX),
    },
    check: () => ({ ok: true, detail: 'in this process' }),
    close: () => {},
  }
}

export interface RedisPartsOfTables {
  config: Config
  /** The id of the tables that the answers come from (`readTablesId`). */
  tablesId: string | null
  metrics: Metrics
  logger: Logger
}

/** The limiters and caches of processes that share a Redis. They start and go on without it if Redis is unavailable. */
export function redisParts(
  url: string,
  { config, tablesId, metrics, logger }: RedisPartsOfTables,
): QueryParts {
  return openRedisParts(
    {
      url,
      keyPrefix: config.PLEDGEVIEW_REDIS_PREFIX,
      ...(tablesId !== null && { tablesId }),
      keys: { limit: config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX, windowMs },
      addresses: { limit: config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX, windowMs },
      bucketsMax,
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
  // Unix time that never runs backwards: if the system clock is set back, the windows must not stay full until it has
  // caught up.
  const now = () => Math.floor(performance.timeOrigin + performance.now())
  return createMemoryRateLimiter({ limit, windowMs }, { bucketsMax, now })
}
