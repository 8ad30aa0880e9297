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
  type FastifyRequest,
  type RawServerDefault,
} from 'fastify'
import type { ErrorCode } from '../../contracts/api/errors.ts'
import type { PublicAddresses, PublishedDocument } from '../../contracts/api/published-openapi.ts'
import { type ApiVersion, versions as declaredVersions } from '../../contracts/api/versions.ts'
import { createDownloads } from '../exports/downloads.ts'
import { ClientGoneError } from '../runtime/async/fair-turns.ts'
import { addressMatcher } from '../runtime/http/addresses.ts'
import { createConnections } from '../runtime/http/connections.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { nameRequest, traceRequests } from '../runtime/traces.ts'
import type { Databases, Tables } from '../tables/port.ts'
import type { KeyRing } from './auth/key-ring.ts'
import type { OnLookup } from './cache/cache.ts'
import { createCachedEntries, type ResponseCache } from './cache/response-cache.ts'
import { NotFoundError } from './endpoints/endpoint.ts'
import { createEndpointParts, openEndpoint } from './endpoints/open.ts'
import { startForgetting } from './forgetting.ts'
import { createAdmissions } from './http/admission.ts'
import { createClientErrors } from './http/client-errors.ts'
import { createDirectAnswers } from './http/direct-answers.ts'
import { addDownloads } from './http/download-routes.ts'
import { createPublications } from './http/publications.ts'
import {
  answeredRequest,
  createRequestLog,
  type OnKeyAnswered,
  type RequestDone,
} from './http/request-log.ts'
import { addPublicRoutes, addRoutes, createResponder, targetOf } from './http/responder.ts'
import type { SnapshotCache } from './lists/campaign-lists.ts'
import type { QueryAppOptions } from './options.ts'
import type { RateLimiters } from './rate-limit/rate-limiter.ts'

export interface QueryAppParts {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  keyRing: Pick<KeyRing, 'lookup'>
  limiters: RateLimiters
  cache: ResponseCache
  /** The cache of list snapshots. Default: in memory. */
  snapshots?: SnapshotCache
  options: QueryAppOptions
  /** Whether slow answers are kept ahead of the requests for them. Default: they are computed when they are asked for. */
  keepsAhead?: boolean
  /** Whether it forgets in time what it keeps of campaigns. Default: when something else needs the memory. */
  forgets?: boolean
  /** Where consumers find the API and the portal. Default: not known. */
  addresses?: () => PublicAddresses
  /** Default: the declared versions. */
  versions?: readonly ApiVersion[]
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

export type AppRuntime = Omit<Runtime, 'metrics'>

// Node's limit for the request line and the headers together. No path can be longer, so no path parameter is too long.
const headerBytesMax = 16 * 1024

const openApiFile = new URL('../../contracts/api/openapi.json', import.meta.url)

/** Creates the app with its routes under `/api/v1`. It does not listen yet. Closing it lets running requests finish. */
export function createQueryApp(parts: QueryAppParts, runtime: AppRuntime): FastifyInstance {
  const { keyRing, limiters, cache, options, databases } = parts
  const { logger, monotonicMs } = runtime
  const newRequestId = parts.newRequestId ?? (() => randomUUID())
  const opened = createEndpointParts(parts, runtime)
  const admissions = createAdmissions(keyRing, limiters, options.pepper)
  const isTrustedProxy = addressMatcher(options.PLEDGEVIEW_TRUST_PROXY)
  const connections = createConnections({
    perAddressMax: options.PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX,
    isTrustedProxy,
    strangers: {
      perAddressMax: options.strangersPerAddressMax,
      max: options.strangersMax,
      keepAliveMs: options.strangerKeepAliveMs,
    },
  })
  const publications = createPublications(
    parts.addresses ?? (() => ({ apiUrl: undefined, portalUrl: undefined })),
    parts.versions ?? declaredVersions,
    JSON.parse(readFileSync(openApiFile, 'utf8')) as PublishedDocument,
  )
  const responder = createResponder(admissions, connections, publications, runtime)
  const requestLog = createRequestLog(parts.onRequestDone, parts.onKeyAnswered, runtime)
  const clientErrors = createClientErrors(
    { admissions, connections, publications, newRequestId, requestLog },
    runtime,
  )

  async function receive(request: FastifyRequest, reply: FastifyReply, failure?: ErrorCode) {
    const startedAt = monotonicMs()
    request.isDeprecated = 'deprecation' in publications().noticesOf(targetOf(request))
    // Fastify's own hook is not run if the client has gone, and without that hook it measures no time.
    reply.raw.once('close', () =>
      requestLog.report(answeredRequest(request, reply), monotonicMs() - startedAt),
    )
    return responder.receive(request, reply, failure)
  }

  const app = Fastify({
    ...serverOptions(options),
    trustProxy: options.PLEDGEVIEW_TRUST_PROXY.length > 0 && isTrustedProxy,
    genReqId: () => newRequestId(),
    clientErrorHandler: (error: Error, socket) => clientErrors.handle(error, socket),
    // Fastify does not run any hook for these errors.
    frameworkErrors(error, request, reply) {
      request.admission = null
      request.parsedParameters = null
      const failure = error.code === 'FST_ERR_BAD_URL' ? 'malformed_request' : 'internal_error'
      receive(request, reply, failure).catch(cause => {
        logger.error({ requestId: request.id, err: cause }, 'request failed')
        responder.refuse(request, reply, 'internal_error')
      })
    },
  })
  app.server.maxConnections = options.PLEDGEVIEW_CONNECTIONS_MAX
  app.decorateRequest('admission', null)
  app.decorateRequest('parsedParameters', null)
  app.decorateRequest('isDeprecated', false)

  app.addHook('onRequest', async (request, reply) => {
    nameRequest(reply.raw, answeredRequest(request, reply))
    if (await receive(request, reply)) return reply
  })
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof NotFoundError) return responder.refuse(request, reply, 'not_found')
    if (error instanceof ClientGoneError) return reply.hijack()
    logger.error({ requestId: request.id, err: error }, 'request failed')
    return responder.refuse(request, reply, 'internal_error')
  })
  // An answer can be direct only if it is decided at once. The limiter in Redis cannot do that.
  const direct =
    limiters.keys.hitNow &&
    createDirectAnswers(admissions, cache, publications, requestLog, newRequestId, runtime)
  addRoutes(
    app,
    endpoint => openEndpoint(app, endpoint, opened, parts, runtime),
    createCachedEntries(cache, options),
    responder,
    direct?.learn,
  )
  if (parts.forgets) {
    // Small buffers share 64 KiB by default, and one that stays, as a constant does, keeps the bytes of all.
    Buffer.poolSize = 0
    const keepers = [cache, ...(direct ? [direct] : []), ...opened.keepers]
    const forgetting = startForgetting(keepers, parts.tables, databases, runtime)
    app.addHook('onClose', forgetting.close)
  }
  addDownloads(app, createDownloads(options.PLEDGEVIEW_EXPORT_DIR), responder, keyRing)
  addPublicRoutes(app, responder, publications, runtime)
  app.addHook('preClose', async () => direct?.stop())
  connections.listen(app.server, direct?.answer)
  traceRequests(app.server)
  clientErrors.listen(app.server)
  return app
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
