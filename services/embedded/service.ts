/**
 * The embedded service: the read model, the API on the public port and the ops port, in one process.
 *
 * Where the projector stops (too many rejects, a table that does not answer), the API goes on answering from what is
 * there, and readiness says why it no longer moves.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createQueryApp } from '../query/app.ts'
import { createKeyRing, defaultKeyRingOptions, type KeyRing } from '../query/key-ring.ts'
import { defaultQueryAppOptions } from '../query/options.ts'
import type { RateLimiter } from '../query/rate-limiter.ts'
import { createMemoryRateLimiter } from '../query/rate-limiter-memory.ts'
import { createMemoryResponseCache } from '../query/response-cache-memory.ts'
import type { Config } from '../shared/config.ts'
import { createMetrics, type Metrics } from '../shared/metrics.ts'
import { type Check, createOpsServer } from '../shared/ops-server.ts'
import { type DataDirectory, removeServiceAddress, writeServiceAddress } from './data-directory.ts'
import { type EmbeddedModel, openEmbeddedModel } from './model.ts'
import { statusOf } from './status.ts'

export interface EmbeddedServiceOptions {
  directory: DataDirectory
  config: Config
  /** 0 takes a free one. */
  port: number
  opsPort: number
  logger: Logger
}

export interface EmbeddedService {
  model: EmbeddedModel
  /** `http://host:port/api/v1` */
  apiUrl: string
  opsUrl: string
  close(): Promise<void>
}

const windowMs = 60_000
const bucketsMax = 100_000
const turnMsMax = 30_000

/** Starts everything; both ports listen when it resolves. Throws, with nothing left open, where one thing fails. */
export async function startEmbeddedService(options: EmbeddedServiceOptions): Promise<EmbeddedService> {
  const { directory, config, logger } = options
  const closers: (() => unknown)[] = []
  async function close(): Promise<void> {
    for (const closer of closers.splice(0).reverse()) await closer()
  }

  try {
    const metrics = createMetrics()
    const model = await openEmbeddedModel({ directory, config, metrics, logger })
    closers.push(() => model.close())
    const keyRing = createKeyRing({
      tables: model.tables,
      databases: model.databases,
      options: defaultKeyRingOptions,
      now: Date.now,
      onError: error => logger.error({ error: String(error) }, 'the keys could not be read'),
    })
    await keyRing.start()
    closers.push(() => keyRing.close())

    const app = queryApp(model, keyRing, config, metrics, logger)
    const apiUrl = await listen(app, config.PLEDGEVIEW_HOST, options.port)
    closers.push(() => app.close())
    const token = randomBytes(32).toString('hex')
    const ops = opsServer(model, keyRing, config, metrics, token)
    const opsUrl = await listen(ops, config.PLEDGEVIEW_OPS_HOST, options.opsPort)
    closers.push(() => ops.close())

    const port = Number(new URL(apiUrl).port)
    writeServiceAddress(directory, { pid: process.pid, port, ops_url: opsUrl, ops_token: token })
    closers.push(() => removeServiceAddress(directory))
    return { model, apiUrl: `${apiUrl}/api/v1`, opsUrl, close }
  } catch (error) {
    await close()
    throw error
  }
}

function queryApp(
  model: EmbeddedModel,
  keyRing: KeyRing,
  config: Config,
  metrics: Metrics,
  logger: Logger,
): FastifyInstance {
  const now = Date.now
  return createQueryApp({
    tables: model.tables,
    databases: model.databases,
    keyRing,
    limiters: {
      keys: limiter(config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX),
      addresses: limiter(config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX),
    },
    cache: createMemoryResponseCache({ bytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX, now }),
    options: {
      ...defaultQueryAppOptions,
      pepper: model.secrets.keyPepper,
      platformCurrency: config.PLEDGEVIEW_PLATFORM_CURRENCY,
      commitHorizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      listCacheMs: config.PLEDGEVIEW_CACHE_MS,
      detailCacheMs: config.PLEDGEVIEW_CACHE_MS,
      statsCacheMs: config.PLEDGEVIEW_STATS_CACHE_MS,
      snapshotBytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX,
      connectionsMax: config.PLEDGEVIEW_CONNECTIONS_MAX,
      trustProxy: config.PLEDGEVIEW_TRUST_PROXY,
    },
    now,
    logger,
    onRequestDone: ({ method, route, status, elapsedMs }) => {
      metrics.requests.inc({ method, route, status })
      metrics.requestSeconds.observe({ route }, elapsedMs / 1000)
    },
  })
}

function limiter(limit: number): RateLimiter {
  // Unix time that never runs backwards: a clock that is set back must not hold windows closed.
  const now = () => Math.floor(performance.timeOrigin + performance.now())
  return createMemoryRateLimiter({ limit, windowMs }, { bucketsMax, now })
}

function opsServer(
  model: EmbeddedModel,
  keyRing: KeyRing,
  config: Config,
  metrics: Metrics,
  token: string,
): FastifyInstance {
  const { projector, tables } = model
  return createOpsServer({
    health: () => {
      const { turnedMsAgo, failure } = projector.health()
      const ok = failure !== undefined || turnedMsAgo < turnMsMax
      return { loop: { ok, detail: `turned ${Math.round(turnedMsAgo)} ms ago` } }
    },
    readiness: async () => ({
      projector: projectorCheck(projector.health().failure),
      lag: await lagCheck(model, config.PLEDGEVIEW_LAG_RECORDS_MAX),
      keys: { ok: keyRing.isReady(), detail: keyRing.isReady() ? 'followed' : 'not read lately' },
      tables: await tablesCheck(tables),
    }),
    status: () => statusOf(model),
    metrics,
    beforeScrape: async () => {
      for (const { topic, partition, committed, end } of await projector.lag()) {
        metrics.lag.set({ topic, partition }, end - committed)
      }
    },
    keys: { directory: model.keys, token },
  })
}

function projectorCheck(failure: string | undefined): Check {
  return { ok: failure === undefined, detail: failure ?? 'running' }
}

async function lagCheck(model: EmbeddedModel, lagMax: number): Promise<Check> {
  const lag = await model.projector.lag()
  const records = lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
  return { ok: records <= lagMax, detail: `${records} records wait; ${lagMax} may` }
}

async function tablesCheck(tables: EmbeddedModel['tables']): Promise<Check> {
  try {
    await tables.rows({ query: 'SELECT 1 SETTINGS max_execution_time = 2' })
    return { ok: true, detail: 'answer' }
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) }
  }
}

async function listen(server: FastifyInstance, host: string, port: number): Promise<string> {
  return server.listen({ host, port })
}
