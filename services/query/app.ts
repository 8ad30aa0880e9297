/**
 * The query service's HTTP app: its parts, its routes, and the order in which a request goes through them.
 *
 * Promise: every response, of every status and on every path that Fastify or Node may take, is JSON of the API's shape
 * (or 204/304) and carries request id, CORS and rate-limit headers. Nothing that a statement, a table or an exception
 * says reaches a client.
 */
import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyHttpOptions, type FastifyInstance, type RawServerDefault } from 'fastify'
import type { Logger } from 'pino'
import { basePath } from '../../contracts/api/conventions.ts'
import { type ErrorCode, invalidParameterBody } from '../../contracts/api/errors.ts'
import { parseListQuery } from '../../contracts/api/parameters.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createCampaignLists, listKey, type SnapshotCache } from './campaign-lists.ts'
import { type CampaignReader, createCampaignReader, NotFoundError } from './campaign-reader.ts'
import { createCachedCampaignRows } from './campaign-rows.ts'
import { createGate } from './gate.ts'
import { createAdmissions } from './http/admission.ts'
import { createExchange, type Exchange, queryOf } from './http/exchange.ts'
import { type RequestDone, reportRequest } from './http/request-log.ts'
import { answerUnreadable } from './http/unreadable.ts'
import type { KeyRing } from './key-ring.ts'
import { createListFollower } from './list-follower.ts'
import { createIndexListSource, createSqlListSource } from './list-source.ts'
import type { QueryAppOptions } from './options.ts'
import type { RateLimiters } from './rate-limiter.ts'
import type { ResponseCache } from './response-cache.ts'

export interface QueryAppDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  keyRing: Pick<KeyRing, 'lookup'>
  limiters: RateLimiters
  cache: ResponseCache
  /** Where the snapshots of lists are kept. Default: in memory. */
  snapshots?: SnapshotCache
  options: QueryAppOptions
  /** Unix milliseconds. */
  now: () => number
  logger: Logger
  /** Called once for every answer, for the metrics. */
  onRequestDone?: (done: RequestDone) => void
  newRequestId?: () => string
}

// What Node accepts of a request line and headers together. No path is longer, so no path parameter is too long.
const headerBytesMax = 16 * 1024

/** The app, with its routes under `/api/v1`, not listening yet. Closing it lets running requests finish. */
export function createQueryApp(dependencies: QueryAppDependencies): FastifyInstance {
  const { keyRing, limiters, cache, options, now, logger, onRequestDone } = dependencies
  const newRequestId = dependencies.newRequestId ?? (() => randomUUID())
  const tables = gatedTables(dependencies.tables, options)
  const reader = createReader({ ...dependencies, tables })
  const admissions = createAdmissions({ keyRing, limiters, pepper: options.pepper, now })
  const exchange = createExchange(admissions, now)

  const app = Fastify({
    ...serverOptions(options),
    genReqId: () => newRequestId(),
    // Fastify answers these without running a hook.
    frameworkErrors(error, request, reply) {
      const startedAt = now()
      request.admission = null
      request.understood = null
      reply.raw.once('close', () =>
        reportRequest(request, reply, now() - startedAt, { logger, onRequestDone }),
      )
      exchange.receive(request, reply, frameworkErrorCode(error.code)).catch(cause => {
        logger.error({ requestId: request.id, err: cause }, 'request failed')
        exchange.refuse(request, reply, 'internal_error')
      })
    },
  })
  app.server.maxConnections = options.connectionsMax
  app.decorateRequest('admission', null)
  app.decorateRequest('understood', null)

  app.addHook('onRequest', async (request, reply) => {
    if (await exchange.receive(request, reply)) return reply
  })
  app.addHook('onResponse', async (request, reply) => {
    reportRequest(request, reply, reply.elapsedTime, { logger, onRequestDone })
  })
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof NotFoundError) return exchange.refuse(request, reply, 'not_found')
    logger.error({ requestId: request.id, err: error }, 'request failed')
    return exchange.refuse(request, reply, 'internal_error')
  })
  addRoutes(app, { reader, cache, exchange })
  answerUnreadable(app.server, {
    admissions,
    newRequestId,
    now,
    onDone({ requestId, code, status, elapsedMs }) {
      logger.info({ requestId, code, status, ms: elapsedMs }, 'unreadable request')
      onRequestDone?.({ method: 'unknown', route: 'unknown', status, elapsedMs })
    },
    onError: error => logger.error({ err: error }, 'admission failed'),
  })
  return app
}

/** Lists and rows follow one index, so that a page's rows are as new as its list. */
function createReader(dependencies: QueryAppDependencies): CampaignReader {
  const { tables, databases, options, now, logger } = dependencies
  const { commitHorizonMs, statementMsMax, indexCampaignsMax: campaignsMax } = options
  const follower = createListFollower({
    tables,
    databases,
    options: { commitHorizonMs, statementMsMax, campaignsMax },
    now,
    onError: error => logger.warn({ err: error }, 'the list index could not be loaded; trying again'),
  })
  const fallback = createSqlListSource({ tables, databases, options })
  const source = createIndexListSource({ follower, fallback, commitHorizonMs })
  const lists = createCampaignLists({ ...dependencies, source })
  const rows = createCachedCampaignRows({
    tables,
    databases,
    statementMsMax,
    follower,
    bytesMax: options.rowBytesMax,
  })
  return createCampaignReader({ tables, databases, lists, rows, options, now })
}

interface RouteDependencies {
  reader: CampaignReader
  cache: ResponseCache
  exchange: Exchange
}

function addRoutes(app: FastifyInstance, { reader, cache, exchange }: RouteDependencies): void {
  app.get(`${basePath}/projects`, async (request, reply) => {
    const parsed = parseListQuery(queryOf(request))
    if ('fault' in parsed) {
      const { parameter, rule } = parsed.fault
      return exchange.refuse(request, reply, 'invalid_parameter', invalidParameterBody(parameter, rule))
    }
    const { parameters } = parsed
    request.understood = parameters
    const key = `projects ${parameters.limit} ${parameters.offset} ${listKey(parameters)}`
    return exchange.send(request, reply, await cache.get(key, () => reader.projects(parameters)))
  })

  app.get<{ Params: { slug: string } }>(`${basePath}/projects/:slug`, async (request, reply) => {
    const { slug } = request.params
    const entry = await cache.get(`project ${slug}`, () => reader.projectDetail(slug))
    // Only now is it known to be a slug rather than anything else that stood there.
    request.understood = { slug }
    return exchange.send(request, reply, entry)
  })

  app.get(`${basePath}/stats`, async (request, reply) =>
    exchange.send(request, reply, await cache.get('stats', () => reader.stats())),
  )
}

function serverOptions(options: QueryAppOptions): FastifyHttpOptions<RawServerDefault> {
  return {
    logger: false,
    trustProxy: typeof options.trustProxy === 'boolean' ? options.trustProxy : [...options.trustProxy],
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionTimeout: options.socketTimeoutMs,
    exposeHeadRoutes: false,
    // A request that still comes in while the app closes is answered like any other.
    return503OnClosing: false,
    routerOptions: {
      maxParamLength: headerBytesMax,
      // The query is read by the contract's own parser, and only where it means something.
      querystringParser: () => ({}),
    },
    http: {
      maxHeaderSize: headerBytesMax,
      headersTimeout: options.headersTimeoutMs,
      requireHostHeader: false,
      // Timeouts are noticed when the connections are looked at.
      connectionsCheckingInterval: Math.min(1000, options.headersTimeoutMs),
    },
  }
}

function frameworkErrorCode(code: string): ErrorCode {
  switch (code) {
    case 'FST_ERR_BAD_URL':
      return 'malformed_request'
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return 'not_found'
    default:
      return 'internal_error'
  }
}

// Every statement of a request waits for its place, and no wait has no end.
function gatedTables(tables: Pick<Tables, 'rows'>, options: QueryAppOptions): Pick<Tables, 'rows'> {
  const gate = createGate({
    runningMax: options.statementsMax,
    waitingMax: options.waitingStatementsMax,
    waitMsMax: options.statementMsMax,
  })
  return {
    rows: statement =>
      gate(() => tables.rows(statement, { signal: AbortSignal.timeout(options.statementMsMax) })),
  }
}
