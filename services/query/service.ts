/**
 * The query service: key ring, limiters, caches and the HTTP app, wired to the tables.
 *
 * The embedded process and the separate query processes use this same wiring. What differs between them is passed in.
 */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { PublicAddresses } from '../../contracts/api/published-openapi.ts'
import { closeServer } from '../runtime/async/closing.ts'
import { startRounds } from '../runtime/async/rounds.ts'
import type { Config } from '../runtime/config.ts'
import { oncePerMinute } from '../runtime/ops/logger.ts'
import type { Metrics } from '../runtime/ops/metrics.ts'
import { createRuntime, type Runtime } from '../runtime/runtime.ts'
import { type FollowedDatabases, followMs } from '../tables/generation-log.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { createQueryApp } from './app.ts'
import { createKeyRing, defaultKeyRingOptions } from './auth/key-ring.ts'
import { createCache, type OnLookup } from './cache/cache.ts'
import { responses } from './cache/response-cache.ts'
import type { RequestDone } from './http/request-log.ts'
import { snapshots } from './lists/campaign-lists.ts'
import { appOptionsOf } from './options.ts'
import type { SharedState } from './shared-state.ts'
import { createUsageRecorder } from './usage/usage-recorder.ts'

export interface QueryServiceSettings {
  tables: Tables
  databases: Databases & Partial<Pick<FollowedDatabases, 'follow'>>
  config: Config
  /** The pepper that was used to hash the secrets of the API keys. */
  keyPepper: string
  state: SharedState
  /** Where consumers find the API and the portal. Default: as configured. */
  addresses?: () => PublicAddresses
  metrics: Metrics
  logger: Logger
}

export type QueryService = Awaited<ReturnType<typeof startQueryService>>

const metersMax = 1_000

/** Loads the keys and creates the app, which does not listen yet. */
export async function startQueryService(settings: QueryServiceSettings) {
  const { tables, databases, config, state, metrics, logger } = settings
  const runtime = createRuntime(logger, metrics)
  const warning = (text: string) =>
    oncePerMinute(error => logger.warn({ error: String(error) }, text), runtime)
  const onError = warning('the tables could not be read')
  const keyRing = createKeyRing(
    { ...defaultKeyRingOptions, readMsMax: config.PLEDGEVIEW_KEYS_READ_MS_MAX },
    { tables, databases, ...runtime, onError },
  )
  const process = `query-${randomUUID()}`
  const onUsageError = warning('the usage of keys could not be written')
  const keyLimit = config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX
  const usage = createUsageRecorder(tables, databases, process, onUsageError, { ...runtime, keyLimit })
  usage.start()
  await keyRing.start()
  const { follow } = databases
  const following =
    follow && startRounds(stopping => follow(tables, stopping), { pauseMs: followMs, onError, ...runtime })
  const app = createQueryApp(
    {
      tables,
      databases,
      keyRing,
      limiters: state.limiters,
      ...createCaches(config.PLEDGEVIEW_CACHE_BYTES_MAX, state.caches, runtime),
      options: appOptionsOf(config, settings.keyPepper),
      keepsAhead: true,
      forgets: true,
      addresses: settings.addresses ?? (() => configuredAddresses(config)),
      onRequestDone: requestMeter(metrics),
      onKeyAnswered: usage.count,
    },
    runtime,
  )
  return {
    app,
    keyRing,
    async close(): Promise<void> {
      await closeServer(app)
      await Promise.all([following?.close(), keyRing.close(), usage.close()])
      state.close()
    },
  }
}

/** The caches, with their lookups counted in the metrics. `bytesMax`: of both together. */
function createCaches(
  bytesMax: number,
  shared: SharedState['caches'],
  { now, metrics }: Pick<Runtime, 'now' | 'metrics'>,
) {
  function onLookup(cache: string): OnLookup {
    // The lookup of a metric by its labels is what makes counting slow.
    const hits = metrics.cacheLookups.labels(cache, 'hit')
    const misses = metrics.cacheLookups.labels(cache, 'miss')
    return (isHit, count = 1) => (isHit ? hits : misses).inc(count)
  }
  const share = { bytesMax: bytesMax / 2, now }
  return {
    cache: createCache(responses, { ...share, shared: shared?.responses, onLookup: onLookup('responses') }),
    snapshots: createCache(snapshots, { ...share, shared: shared?.snapshots, onLookup: onLookup('lists') }),
    onRowLookup: onLookup('rows'),
  }
}

/** The public addresses that an operator has set. */
export function configuredAddresses(config: Config): PublicAddresses {
  return { apiUrl: config.PLEDGEVIEW_API_URL, portalUrl: config.PLEDGEVIEW_PORTAL_URL }
}

/**
 * Counts requests. It looks a metric up once per combination of labels, because the lookup is what makes counting slow.
 */
function requestMeter({ requests, requestSeconds }: Metrics): (done: RequestDone) => void {
  const meterOf = (method: string, route: string, status: number) => ({
    counter: requests.labels(method, route, String(status)),
    histogram: requestSeconds.labels(route),
  })
  const meters = new Map<string, ReturnType<typeof meterOf>>()
  return ({ method, route, status, elapsedMs }) => {
    const name = `${method} ${route} ${status}`
    const meter = meters.get(name) ?? meterOf(method, route, status)
    // Clients choose the method, so a client that invents methods must not fill the memory.
    if (meters.size < metersMax) meters.set(name, meter)
    meter.counter.inc()
    meter.histogram.observe(elapsedMs / 1000)
  }
}
