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
  type ResponseHeaders,
  rateLimitHeaders,
  secondsUntil,
} from './headers.ts'
import { isResource, type Routing, refusal, refusalCodeOf } from './refusals.ts'
import { isWellFormed } from './well-formed.ts'

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
  /** What every response has, of this request's. */
  function headersOf(request: FastifyRequest, time: number): ResponseHeaders {
    const { decision, windowMs } = request.admission ?? admissions.unknown()
    return { ...commonHeaders(request.id), ...rateLimitHeaders(decision, { windowMs, now: time }) }
  }

  function refuse(request: FastifyRequest, reply: FastifyReply, code: ErrorCode, body?: ErrorBody) {
    const time = now()
    const answer = refusal(code, body)
    reply.code(answer.status).headers(headersOf(request, time)).headers(answer.headers)
    if (code === 'rate_limited' && request.admission !== null) {
      reply.header('retry-after', String(secondsUntil(request.admission.decision.resetAt, time)))
    }
    return reply.send(answer.body)
  }

  return {
    refuse,

    async receive(request, reply, failure) {
      const requester = { request: request.raw, address: request.ip }
      if (request.method === 'OPTIONS') {
        // Where nobody can be asked, a browser is let through to the answer that says so: of a failed preflight it tells
        // its page nothing.
        request.admission = await admissions.peek(requester).catch(() => null)
        reply.code(204).headers(headersOf(request, now())).headers(preflightHeaders).send()
        return true
      }
      request.admission = await admissions.admit(requester)
      const code = refusalCodeOf(request.admission, {
        failure: failure ?? (isWellFormed(request.raw) ? undefined : 'malformed_request'),
        routing: routingOf(request),
      })
      if (code !== undefined) refuse(request, reply, code)
      return code !== undefined
    },

    send(request, reply, entry) {
      const time = now()
      const headers = { ...headersOf(request, time), ...cacheHeaders(entry, time) }
      if (isNoneMatch(request.headers['if-none-match'], entry.etag)) {
        return reply.code(304).headers(headers).send()
      }
      // This is what nearly every request comes to. The bytes are finished and no hook wants them, so they go to Node
      // as they are, past what Fastify does for a body that it does not know.
      reply.raw.writeHead(200, flatHeaders(headers, entry.body.length))
      reply.hijack()
      reply.raw.end(entry.body)
      return reply
    },
  }
}

// Node takes names and values in one array, and then looks nothing up.
function flatHeaders(headers: ResponseHeaders, length: number): string[] {
  const flat = ['content-type', jsonType, 'content-length', String(length)]
  for (const name in headers) flat.push(name, headers[name] ?? '')
  return flat
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
