/** What is known of a request while it is answered, and the ways to answer it over Fastify. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorBody, ErrorCode } from '../../../contracts/api/errors.ts'
import type { CacheEntry } from '../response-cache.ts'
import type { Admission, Admissions } from './admission.ts'
import {
  cacheHeaders,
  commonHeaders,
  isNoneMatch,
  jsonType,
  preflightHeaders,
  rateLimitHeaders,
  secondsUntil,
} from './headers.ts'
import { isResource, type Routing, refusal, refusalCodeOf } from './refusals.ts'

declare module 'fastify' {
  interface FastifyRequest {
    admission: Admission | null
    /** The parameters as they were understood, for the log. Nothing that was not understood stands here. */
    understood: object | null
  }
}

export interface Exchange {
  /**
   * Takes a request in: request id, CORS, credentials, limit, scope. Answers it there and then when it is a preflight,
   * or refused, or already known to fail with `failure`; returns whether it has. Rejects where it cannot tell.
   */
  receive(request: FastifyRequest, reply: FastifyReply, failure?: ErrorCode): Promise<boolean>
  /** Answers with an error of the registry. */
  refuse(request: FastifyRequest, reply: FastifyReply, code: ErrorCode, body?: ErrorBody): FastifyReply
  /** Answers with a cached body, or confirms the one that the client has. */
  send(request: FastifyRequest, reply: FastifyReply, entry: CacheEntry): FastifyReply
}

/** `now` is in Unix milliseconds. */
export function createExchange(admissions: Admissions, now: () => number): Exchange {
  function setLimitHeaders(reply: FastifyReply, admission: Admission): void {
    reply.headers(rateLimitHeaders(admission.decision, { windowMs: admission.windowMs, now: now() }))
  }

  function refuse(request: FastifyRequest, reply: FastifyReply, code: ErrorCode, body?: ErrorBody) {
    if (request.admission === null) {
      request.admission = admissions.unknown()
      setLimitHeaders(reply, request.admission)
    }
    const answer = refusal(code, body)
    if (code === 'rate_limited') {
      reply.header('retry-after', String(secondsUntil(request.admission.decision.resetAt, now())))
    }
    return reply.code(answer.status).headers(answer.headers).send(answer.body)
  }

  return {
    refuse,

    async receive(request, reply, failure) {
      reply.headers(commonHeaders(request.id))
      const requester = { headers: request.headers, address: request.ip }
      if (request.method === 'OPTIONS') {
        request.admission = await admissions.peek(requester)
        setLimitHeaders(reply, request.admission)
        reply.code(204).headers(preflightHeaders).send()
        return true
      }
      request.admission = await admissions.admit(requester)
      setLimitHeaders(reply, request.admission)
      const code = refusalCodeOf(request.admission, {
        failure: failure ?? (isWithoutHost(request) ? 'malformed_request' : undefined),
        routing: routingOf(request),
      })
      if (code !== undefined) refuse(request, reply, code)
      return code !== undefined
    },

    send(request, reply, entry) {
      reply.headers(cacheHeaders(entry, now()))
      if (isNoneMatch(request.headers['if-none-match'], entry.etag)) return reply.code(304).send()
      return reply.header('content-type', jsonType).send(entry.body)
    },
  }
}

/** The query of a request as it was sent, without the question mark; empty where there is none. */
export function queryOf({ raw }: FastifyRequest): string {
  const url = raw.url ?? ''
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

function routingOf({ is404, raw }: FastifyRequest): Routing {
  if (!is404) return 'found'
  return isResource(raw.url ?? '') ? 'wrong_method' : 'unknown'
}

// RFC 9112 asks for 400 here. Node would send it itself, bare; so it is told not to look.
function isWithoutHost({ raw }: FastifyRequest): boolean {
  return raw.httpVersion === '1.1' && raw.headers.host === undefined
}
