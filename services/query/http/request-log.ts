/**
 * Writes one log line per request, and reports the same to the metrics. The line holds the prefix of the key, the
 * pattern of the route, and the parsed parameters. It never holds a URL, a query string or a header as the client sent
 * it, because any of these may hold a secret in the wrong place.
 *
 * A client that is refused can send requests as fast as the service refuses them. So of requests without a valid key,
 * and of those beyond the limit of their key, a bounded number of lines is written per second. The next such line has
 * the number of lines that were left out. The metrics count every request.
 */
import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createSlidingWindowLog } from '../rate-limit/rate-limiter.ts'
import type { Admission } from './admission.ts'
import type { Refusal } from './answer.ts'

export interface RequestDone {
  /** `unknown` if the request could not be read. */
  method: string
  /** The pattern of the route, for example `/api/v1/projects/:slug`; `unknown` if no route matched. */
  route: string
  status: number
  elapsedMs: number
}

/**
 * An answer to a key, for the usage of the key. An answer 401 is to a wrong secret of this key; unknown keys are left out.
 * Values rather than an object, because this runs for every request. `request`: if it reached the app.
 */
export type OnKeyAnswered = (
  key: string,
  status: number,
  isDeprecated: boolean,
  request?: AnsweredRequest,
  elapsedMs?: number,
) => void

export interface AnsweredRequest {
  id: string
  method: string
  /** As in `RequestDone`. */
  route: string
  status: number
  admission: Admission | null
  /** The parsed parameters. */
  parameters: object | null
  isDeprecated: boolean
}

export type RequestLog = ReturnType<typeof createRequestLog>

// Of each kind of refused requests.
const linesPerSecondMax = 20

export function createRequestLog(
  onRequestDone: ((done: RequestDone) => void) | undefined,
  onKeyAnswered: OnKeyAnswered | undefined,
  { logger, monotonicMs }: Pick<Runtime, 'logger' | 'monotonicMs'>,
) {
  // Its times are whole seconds, so a window of 0 is one second.
  const lines = createSlidingWindowLog({ limit: linesPerSecondMax, windowMs: 0 }, 2)
  const left = { strangers: 0, overLimit: 0 }

  /** Returns `omit`, or how many lines of this kind were left out since the last one. */
  function sampled(kind: keyof typeof left): number | 'omit' {
    const before = left[kind]
    const { allowed } = lines.take(kind, Math.floor(monotonicMs() / 1000))
    left[kind] = allowed ? 0 : before + 1
    return allowed ? before : 'omit'
  }

  return {
    /** Logs an answered request and reports it to the metrics. */
    report(answered: AnsweredRequest, elapsedMs: number): void {
      const { id, method, route, status, admission, parameters, isDeprecated } = answered
      onRequestDone?.({ method, route, status, elapsedMs })
      const key = answeredKey(admission, status)
      if (key !== undefined) onKeyAnswered?.(key, status, isDeprecated, answered, elapsedMs)
      // Building the line costs more than answering from the cache, so skip it if it would not be written.
      if (!logger.isLevelEnabled('info')) return
      const kind = !admission?.apiKey ? 'strangers' : status === 429 ? 'overLimit' : undefined
      const omitted = kind === undefined ? 0 : sampled(kind)
      if (omitted === 'omit') return
      logger.info(
        {
          requestId: id,
          method,
          route,
          ...(parameters !== null && { parameters }),
          status,
          ms: Math.round(elapsedMs * 10) / 10,
          ...(admission?.namedKey && { key: keyPrefix(admission.namedKey.key) }),
          ...(omitted > 0 && { omitted }),
        },
        'request',
      )
    },

    /** The end of a request that never reached the app: see `client-errors.ts`. */
    reportClientError(requestId: string, admission: Admission, { code, status }: Refusal, ms: number): void {
      onRequestDone?.({ method: 'unknown', route: 'unknown', status, elapsedMs: ms })
      const key = answeredKey(admission, status)
      if (key !== undefined) onKeyAnswered?.(key, status, false)
      const omitted = sampled('strangers')
      if (omitted === 'omit') return
      logger.info({ requestId, code, status, ms, ...(omitted > 0 && { omitted }) }, 'client error')
    },
  }
}

// The status of a request whose client has gone. Only the log and the metrics show it.
const goneStatus = 499

/** The status that an answer had, once its connection has it or is closed. */
export function finalStatus(response: ServerResponse): number {
  return response.writableFinished ? response.statusCode : goneStatus
}

/** The answered request of Fastify's request and reply. */
export function answeredRequest(request: FastifyRequest, reply: FastifyReply): AnsweredRequest {
  const { id, method, admission, parsedParameters: parameters, isDeprecated } = request
  const route = request.routeOptions.url ?? 'unknown'
  const status = finalStatus(reply.raw)
  return { id, method, route, status, admission, parameters, isDeprecated }
}

/**
 * The key that an answer counts for. With a wrong secret only the 401 does: a 429 is then the limit of an address, and a 404
 * is the same for everybody.
 */
function answeredKey(admission: Admission | null, status: number): string | undefined {
  return (admission?.apiKey ?? (status === 401 ? admission?.namedKey : undefined))?.key
}
