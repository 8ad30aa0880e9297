/** The responder: admits requests and sends responses over Fastify. The routes of the API follow it. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { openApiPath, readScope } from '../../../contracts/api/conventions.ts'
import {
  type ErrorBody,
  type ErrorCode,
  errorBody,
  invalidParameterBody,
} from '../../../contracts/api/errors.ts'
import type { Connections } from '../../runtime/http/connections.ts'
import { isWellFormed } from '../../runtime/http/request-headers.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { CachedEntries, CacheEntry } from '../cache/response-cache.ts'
import { endpoints, isResource, servicePaths } from '../endpoints/all.ts'
import { type Endpoint, patternOf } from '../endpoints/endpoint.ts'
import type { LoadAnswer } from '../endpoints/open.ts'
import type { Admission, Admissions } from './admission.ts'
import {
  commonHeaders,
  credentialHeaders,
  preflightHeaders,
  type ResponseHeaders,
  refusal,
  sendEntry,
} from './answer.ts'
import type { DirectAnswers } from './direct-answers.ts'
import type { Publications } from './publications.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs no key. */
    isPublic?: boolean
  }
  interface FastifyRequest {
    admission: Admission | null
    /** The parsed parameters, for the log. Raw input is never stored here. */
    parsedParameters: object | null
    /** Whether the request was to a deprecated version. */
    isDeprecated: boolean
  }
}

export type Responder = ReturnType<typeof createResponder>

export function createResponder(
  admissions: Admissions,
  connections: Pick<Connections, 'identify' | 'headersOf'>,
  publications: () => Publications,
  { now }: Pick<Runtime, 'now'>,
) {
  /** The headers of every response to this request. */
  function ownHeadersOf(request: FastifyRequest): ResponseHeaders {
    const { decision } = request.admission ?? admissions.unknown()
    return {
      ...commonHeaders(request.id, decision, now()),
      ...publications().noticesOf(targetOf(request)),
    }
  }

  function refuse(request: FastifyRequest, reply: FastifyReply, why: ErrorCode | ErrorBody, status?: number) {
    const { documentationUrl } = publications()
    const answer = refusal(typeof why === 'string' ? errorBody(why, documentationUrl) : why)
    const isRateLimited = answer.code === 'rate_limited'
    reply
      .code(status ?? answer.status)
      .headers(ownHeadersOf(request))
      .headers(answer.headers)
      // A client that goes on beyond its limit gets no more answers on this connection.
      .headers(connections.headersOf(reply.raw, isRateLimited))
    if (isRateLimited && request.admission !== null) {
      reply.header('retry-after', String(Math.ceil(request.admission.decision.delayMs / 1000)))
    }
    return reply.send(answer.body)
  }

  async function answerPreflight(request: FastifyRequest, reply: FastifyReply): Promise<true> {
    connections.identify(request.raw, false)
    // If the limiter fails, let the preflight pass: the browser then sees the error of the real request.
    // It shows its page nothing of a failed preflight.
    request.admission = await admissions.admitPreflight(request.ip).catch(() => null)
    if (request.admission?.decision.allowed === false) {
      refuse(request, reply, 'rate_limited')
      return true
    }
    reply
      .code(204)
      .headers(ownHeadersOf(request))
      .headers(preflightHeaders)
      .headers(connections.headersOf(reply.raw, false))
      .send()
    return true
  }

  return {
    /** Sends an error of the registry, with its text and status, or with this body and status. */
    refuse,

    /** The headers of every answer to an admitted request. */
    headersOf: (request: FastifyRequest, reply: FastifyReply): ResponseHeaders => ({
      ...ownHeadersOf(request),
      ...connections.headersOf(reply.raw, false),
      vary: credentialHeaders,
    }),

    /**
     * Admits a request: request id, CORS, credentials, rate limit, scope. It sends the response at once if the request is
     * a preflight, is refused, or has already failed with `failure`. Returns whether it sent a response. Rejects if the
     * admission failed.
     */
    async receive(request: FastifyRequest, reply: FastifyReply, failure?: ErrorCode): Promise<boolean> {
      if (request.method === 'OPTIONS') return answerPreflight(request, reply)
      request.admission = await admissions.admit(request.raw, request.ip)
      connections.identify(request.raw, request.admission.apiKey !== undefined)
      const code = refusalCodeOf(request, request.admission, failure)
      if (code !== undefined) refuse(request, reply, code)
      return code !== undefined
    },

    /** Sends a cached body, or 304 if the client has the same body already. */
    send(request: FastifyRequest, reply: FastifyReply, entry: CacheEntry): void {
      const { decision } = request.admission ?? admissions.unknown()
      const notices = {
        ...publications().noticesOf(targetOf(request)),
        ...connections.headersOf(reply.raw, false),
      }
      const ifNoneMatch = request.headers['if-none-match']
      sendEntry(reply.raw, entry, { requestId: request.id, decision, notices, ifNoneMatch, now: now() })
      reply.hijack()
    },
  }
}

/** The raw query string of a request, without the question mark; empty if there is none. */
export function queryOf({ raw }: FastifyRequest): string {
  const url = raw.url ?? ''
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

/**
 * The pattern of the route, or the target if there is no route. The router decodes a path before it looks for a route, so
 * a target may differ from its pattern.
 */
export function targetOf({ routeOptions, raw }: FastifyRequest): string {
  return routeOptions.url ?? raw.url ?? ''
}

/** Why a request is refused before any data is read for it; undefined if it is allowed. `failure`: an error that is already known. */
function refusalCodeOf(
  { is404, raw, routeOptions }: FastifyRequest,
  { apiKey, decision }: Admission,
  failure: ErrorCode | undefined,
): ErrorCode | undefined {
  if (!decision.allowed) return 'rate_limited'
  if (failure !== undefined) return failure
  if (!isWellFormed(raw)) return 'malformed_request'
  // The router takes an asterisk for the root.
  if (raw.url === '*') return 'not_found'
  if (is404) return isResource(raw.url ?? '') ? 'method_not_allowed' : 'not_found'
  if (routeOptions.config.isPublic) return undefined
  if (apiKey === undefined) return 'unauthorized'
  return apiKey.scopes.includes(readScope) ? undefined : 'forbidden'
}

/* The routes of the API. A request that gets here is admitted. */

/** Adds the routes that read campaigns. */
export function addRoutes(
  app: FastifyInstance,
  open: (endpoint: Endpoint) => LoadAnswer,
  cached: CachedEntries,
  responder: Responder,
  learn: DirectAnswers['learn'] | undefined,
): void {
  for (const endpoint of endpoints) {
    const load = open(endpoint)
    const route = patternOf(endpoint)
    app.get<{ Params: Record<string, string> }>(route, async (request, reply) => {
      const asked = endpoint.read(queryOf(request), request.params)
      if ('fault' in asked) {
        const { parameter, rule } = asked.fault
        return responder.refuse(request, reply, invalidParameterBody(parameter, rule))
      }
      const { key, parameters } = asked
      // These are logged even if the lookup fails. One in the path is not: it could be anything, even a secret.
      if (endpoint.parameters.path === undefined) request.parsedParameters = parameters
      const entry = await cached(request, key, owner => load(asked, owner))
      request.parsedParameters = parameters
      learn?.(request.raw.url ?? '', { route, key, parameters })
      responder.send(request, reply, entry)
    })
  }
}

/** Adds the routes that need no key. Their requests are counted like all others. */
export function addPublicRoutes(
  app: FastifyInstance,
  responder: Responder,
  publications: () => Publications,
  { now }: Pick<Runtime, 'now'>,
): void {
  const config = { isPublic: true }
  for (const path of servicePaths) {
    app.get(path, { config }, (request, reply) => {
      responder.send(request, reply, publications().service(now()))
    })
  }
  app.get(openApiPath, { config }, (request, reply) => {
    responder.send(request, reply, publications().openApi(now()))
  })
}
