/**
 * The HTTP app of the query service: its parts, its routes, and the order in which a request passes through them.
 *
 * Promise: every response is JSON of the API's shape (or 204 or 304) and carries the request id, the CORS headers and
 * the rate-limit headers. This holds for every status, and for errors that Fastify or Node answers itself. No text of a
 * statement, a table or an exception reaches a client.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import Fastify, {
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import type { ErrorCode } from '../../contracts/api/errors.ts'
import type { PublicAddresses, PublishedDocument } from '../../contracts/api/published-openapi.ts'
import { type ApiVersion, versions as declaredVersions } from '../../contracts/api/versions.ts'
import { addressMatcher } from '../runtime/http/address-ranges.ts'
import { createConnections } from '../runtime/http/connections.ts'
import type { Sleep } from '../runtime/sleep.ts'
import type { Databases, Tables } from '../tables/port.ts'
import type { KeyRing } from './auth/key-ring.ts'
import { createCache, type OnLookup } from './cache/cache.ts'
import type { ResponseCache } from './cache/response-cache.ts'
import { createCachedCampaignRows } from './campaigns/campaign-rows.ts'
import { createAhead } from './endpoints/ahead.ts'
import { endpoints } from './endpoints/all.ts'
import {
  type Asked,
  type Endpoint,
  type EndpointParts,
  entryOfLoaded,
  NotFoundError,
} from './endpoints/endpoint.ts'
import { ClientGoneError, createFairTurns, type Turn } from './fair-turns.ts'
import { type ForgettingDependencies, forget, type Keeper } from './forgetting.ts'
import { createAdmissions } from './http/admission.ts'
import { createCachedEntries } from './http/cached-entries.ts'
import { createClientErrors } from './http/client-errors.ts'
import { createDirectAnswers } from './http/direct-answers.ts'
import { createPublications } from './http/publications.ts'
import {
  answeredRequest,
  createRequestLog,
  type OnKeyAnswered,
  type RequestDone,
} from './http/request-log.ts'
import { createResponder, targetOf } from './http/responder.ts'
import { addPublicRoutes, addRoutes, type OpenEndpoint } from './http/routes.ts'
import { deprecatedMatcher } from './http/version-notices.ts'
import { createCampaignLists, type SnapshotCache } from './lists/campaign-lists.ts'
import { createListFollower } from './lists/list-follower.ts'
import { createIndexListSource, createSqlListSource } from './lists/list-source.ts'
import { snapshots as listSnapshots } from './lists/snapshots.ts'
import type { QueryAppOptions } from './options.ts'
import type { RateLimiters } from './rate-limit/rate-limiter.ts'
import { whileOpen } from './while-open.ts'

export interface QueryAppDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  keyRing: Pick<KeyRing, 'lookup'>
  limiters: RateLimiters
  cache: ResponseCache
  /** The cache of list snapshots. Default: in memory. */
  snapshots?: SnapshotCache
  options: QueryAppOptions
  /** Keeps slow answers ahead of the requests for them. `random`: 0 to 1. Default: they are computed when they are asked for. */
  ahead?: { sleep: Sleep; random: () => number }
  /** Forgets what it keeps of campaigns in time. Default: when something else needs the memory. */
  forgetting?: Pick<ForgettingDependencies, 'sleep'>
  /** Where consumers find the API and the portal. Default: not known. */
  addresses?: () => PublicAddresses
  /** Default: the declared versions. */
  versions?: readonly ApiVersion[]
  /** Unix milliseconds. */
  now: () => number
  /** Milliseconds of a clock that never runs backwards. */
  monotonicNow: () => number
  logger: Logger
  /** Called once per response, for the metrics. */
  onRequestDone?: (done: RequestDone) => void
  /** Called for the rows of a page: how many were cached, and how many were not. */
  onRowLookup?: OnLookup
  /** Called once per answer to a key that exists. */
  onKeyAnswered?: OnKeyAnswered
  newRequestId?: () => string
  /** Returns an id that is unique among all processes. */
  newSnapshotId?: () => string
}

// Node's limit for the request line and the headers together. No path can be longer, so no path parameter is too long.
const headerBytesMax = 16 * 1024

const openApiFile = new URL('../../contracts/api/openapi.json', import.meta.url)

/** Creates the app with its routes under `/api/v1`. It does not listen yet. Closing it lets running requests finish. */
export function createQueryApp(dependencies: QueryAppDependencies): FastifyInstance {
  const { keyRing, limiters, cache, options, now, monotonicNow, logger, onRequestDone } = dependencies
  const newRequestId = dependencies.newRequestId ?? (() => randomUUID())
  const tables = limitTables(dependencies.tables, options)
  const { parts, keepers } = createParts({ ...dependencies, tables })
  const admissions = createAdmissions({ keyRing, limiters, pepper: options.pepper, now })
  const isTrustedProxy = addressMatcher(options.trustProxy)
  const connections = createConnections({
    perAddressMax: options.connectionsPerAddressMax,
    isTrustedProxy,
    strangers: {
      perAddressMax: options.strangersPerAddressMax,
      max: options.strangersMax,
      keepAliveMs: options.strangerKeepAliveMs,
    },
  })
  const versions = dependencies.versions ?? declaredVersions
  const publications = createPublications({
    addresses: dependencies.addresses ?? (() => ({ apiUrl: undefined, portalUrl: undefined })),
    versions,
    document: JSON.parse(readFileSync(openApiFile, 'utf8')) as PublishedDocument,
  })
  const responder = createResponder({ admissions, connections, publications, now })
  const isDeprecated = deprecatedMatcher(versions)
  const { onKeyAnswered } = dependencies
  const requestLog = createRequestLog({ logger, onRequestDone, onKeyAnswered, monotonicNow })
  const clientErrors = createClientErrors({
    admissions,
    connections,
    documentationUrl: () => publications().documentationUrl,
    newRequestId,
    now,
    onDone: requestLog.reportClientError,
    onError: error => logger.error({ err: error }, 'the admission of a request failed'),
  })

  const app = Fastify({
    ...serverOptions(options),
    trustProxy: options.trustProxy.length > 0 && isTrustedProxy,
    genReqId: () => newRequestId(),
    clientErrorHandler: (error: Error, socket) => clientErrors.handle(error, socket),
    // Fastify does not run any hook for these errors.
    frameworkErrors(error, request, reply) {
      const startedAt = now()
      request.admission = null
      request.parsedParameters = null
      request.isDeprecated = isDeprecated(targetOf(request))
      reply.raw.once('close', () => requestLog.report(answeredRequest(request, reply), now() - startedAt))
      const received = async () => responder.receive(request, reply, frameworkErrorCode(error.code))
      received().catch(cause => {
        logger.error({ requestId: request.id, err: cause }, 'request failed')
        responder.refuse(request, reply, 'internal_error')
      })
    },
  })
  app.server.maxConnections = options.connectionsMax
  app.decorateRequest('admission', null)
  app.decorateRequest('parsedParameters', null)
  app.decorateRequest('isDeprecated', false)

  // Hooks and routes return nothing if they are done at once, because Fastify waits for whatever they return.
  app.addHook('onRequest', (request, reply, done) => {
    request.isDeprecated = isDeprecated(targetOf(request))
    const isDone = responder.receive(request, reply)
    if (isDone instanceof Promise) isDone.then(isDoneNow => isDoneNow || done(), done)
    else if (!isDone) done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    requestLog.report(answeredRequest(request, reply), reply.elapsedTime)
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof NotFoundError) return responder.refuse(request, reply, 'not_found')
    if (error instanceof ClientGoneError) {
      hangUp(reply)
      // Fastify does not run the hook, because nothing is sent.
      requestLog.report(answeredRequest(request, reply), reply.elapsedTime)
      return reply
    }
    logger.error({ requestId: request.id, err: error }, 'request failed')
    return responder.refuse(request, reply, 'internal_error')
  })
  const direct = createDirectAnswers({
    admissions,
    cache,
    publications,
    requestLog,
    newRequestId,
    now,
    monotonicNow,
    onError: error => logger.error({ err: error }, 'a direct answer broke off'),
  })
  if (dependencies.forgetting) {
    const forgetting = { ...dependencies.forgetting, tables, databases: dependencies.databases }
    const onError = (error: unknown) =>
      logger.warn({ err: error }, 'it is not known whether there was a purge')
    whileOpen(app, signal =>
      forget({ ...forgetting, keepers: [cache, direct, ...keepers], now: monotonicNow, onError }, signal),
    )
  }
  addRoutes(app, endpoints, {
    open: endpoint => openEndpoint(app, endpoint, parts, dependencies),
    cached: createCachedEntries(cache, options),
    responder,
    direct,
  })
  addPublicRoutes(app, { responder, publications, now })
  app.addHook('preClose', done => {
    direct.stop()
    done()
  })
  // Only an answer that is decided at once can be direct.
  connections.listen(app.server, limiters.keys.hitNow && direct.answer)
  clientErrors.listen(app.server)
  return app
}

// No request waits for an answer that is computed ahead, so it may take as long as a statement may be silent. It uses one core.
const aheadMsMax = 30_000

/** Reads an endpoint. If it has no parameters, and the app has `ahead`, it is kept ahead while the app runs. */
function openEndpoint(
  app: FastifyInstance,
  endpoint: Endpoint,
  parts: EndpointParts,
  { cache, tables, options, ahead, now, logger }: QueryAppDependencies,
): OpenEndpoint {
  const finished = async (asked: Asked, owner: string) => {
    const createdAt = now()
    const loaded = await asked.load(owner, createdAt)
    return { entry: entryOfLoaded(endpoint, loaded, { createdAt, options }), isSlow: loaded.isSlow === true }
  }
  const read = endpoint.open(parts)
  const load = async (asked: Asked, owner: string) => (await finished(asked, owner)).entry
  const { query, path } = endpoint.parameters
  if (ahead === undefined || query !== undefined || path !== undefined) return { read, load }
  const asked = read('', {}) as Asked
  const statementMsMax = Math.max(aheadMsMax, options.statementMsMax)
  const kept = createAhead({
    key: asked.key,
    cache,
    compute: () => load(asked, ''),
    computeAhead: signal => {
      const until = AbortSignal.any([signal, AbortSignal.timeout(statementMsMax)])
      const rows: Tables['rows'] = statement => tables.rows(statement, { signal: until })
      const slow = {
        ...parts,
        tables: { rows },
        options: { ...parts.options, statementMsMax, threadsMax: 1 },
      }
      return finished(endpoint.open(slow)('', {}) as Asked, '')
    },
    cacheMs: endpoint.cacheMs(options),
    now,
    ...ahead,
    onError: error => logger.warn({ err: error }, 'an answer could not be computed ahead'),
  })
  whileOpen(app, kept.run, kept.started)
  return { read, load: kept.load }
}

/** Lists and rows share one list follower, so the rows of a page are as new as its list. */
function createParts(dependencies: QueryAppDependencies): { parts: EndpointParts; keepers: Keeper[] } {
  const { tables, databases, options, now, monotonicNow, logger } = dependencies
  const { statementMsMax, indexCampaignsMax: campaignsMax } = options
  const follower = createListFollower({
    tables,
    databases,
    options: { statementMsMax, campaignsMax },
    now: monotonicNow,
    onError: error =>
      logger.warn({ err: error }, 'the list index could not be loaded; it is loaded again later'),
  })
  const fallback = createSqlListSource({ tables, databases, options })
  const source = createIndexListSource({ follower, fallback, now: monotonicNow })
  const newSnapshotId = dependencies.newSnapshotId ?? (() => randomUUID())
  const snapshots =
    dependencies.snapshots ?? createCache(listSnapshots, { bytesMax: options.snapshotBytesMax, now })
  const lists = createCampaignLists({ source, options, now, newSnapshotId, snapshots })
  const rows = createCachedCampaignRows({
    tables,
    databases,
    statementMsMax,
    follower,
    bytesMax: options.rowBytesMax,
    onLookup: dependencies.onRowLookup,
    now: monotonicNow,
  })
  // A purge leaves the ids of lists until they expire, so that the pages of a walk come from one snapshot.
  const lasting: Keeper = { forgetOld: () => snapshots.forgetOld(), forgetAll: () => undefined }
  const parts = { tables, databases, lists, rows, slugs: follower, options }
  return { parts, keepers: [rows, follower, lasting] }
}

// The status of a request whose client has gone. Only the log and the metrics show it.
const goneStatus = 499

function hangUp(reply: FastifyReply): void {
  reply.code(goneStatus).hijack()
  reply.raw.destroy()
}

function serverOptions(options: QueryAppOptions): FastifyHttpOptions<RawServerDefault> {
  return {
    logger: false,
    requestTimeout: options.requestTimeoutMs,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionTimeout: options.socketTimeoutMs,
    exposeHeadRoutes: false,
    // A request that arrives while the app closes is answered like any other.
    return503OnClosing: false,
    routerOptions: {
      maxParamLength: headerBytesMax,
      // The contract's own parser reads the query string, and only for the routes that have one.
      querystringParser: () => ({}),
    },
    http: {
      maxHeaderSize: headerBytesMax,
      headersTimeout: options.headersTimeoutMs,
      requireHostHeader: false,
      // A request has no stream of its own if it has no body.
      optimizeEmptyRequests: true,
      // Node notices timeouts only at these checks.
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

// A statement may be for many requests, so all statements are in one line, and none has a client that can go.
const anyStatement: Turn = { key: '', isGone: () => false }

// Limits how many statements run at once, and bounds the time of each, including the time it waits to start.
function limitTables(tables: Pick<Tables, 'rows'>, options: QueryAppOptions): Pick<Tables, 'rows'> {
  const { statementsMax, waitingStatementsMax, statementMsMax } = options
  const turns = createFairTurns({
    runningMax: statementsMax,
    runningPerKeyMax: statementsMax,
    waitingPerKeyMax: waitingStatementsMax,
    waitMsMax: statementMsMax,
  })
  return {
    rows: statement =>
      turns.run(anyStatement, () => tables.rows(statement, { signal: AbortSignal.timeout(statementMsMax) })),
  }
}
