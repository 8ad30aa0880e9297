/**
 * One line of the log a request, and the same for the metrics. Says who by the key's prefix, where by the route's
 * pattern, and what by the parameters that were understood: never a URL, a query or a header as it was sent, for any of
 * them may hold a secret that somebody put in the wrong place.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

export interface RequestDone {
  /** `unknown` for what was no readable request. */
  method: string
  /** The route's pattern, for example `/api/v1/projects/:slug`; `unknown` where none matched. */
  route: string
  status: number
  elapsedMs: number
}

/** Logs an answered request and tells the metrics of it. */
export function reportRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  elapsedMs: number,
  { logger, onRequestDone }: { logger: Logger; onRequestDone: ((done: RequestDone) => void) | undefined },
): void {
  const { method } = request
  const route = request.routeOptions.url ?? 'unknown'
  const status = reply.statusCode
  // Making the line costs more than the answer of a cached page: not for nobody.
  if (logger.isLevelEnabled('info')) {
    const { admission, understood } = request
    logger.info(
      {
        requestId: request.id,
        method,
        route,
        ...(understood !== null && { parameters: understood }),
        status,
        ms: Math.round(elapsedMs * 10) / 10,
        ...(admission?.keyPrefix !== undefined && { key: admission.keyPrefix }),
      },
      'request',
    )
  }
  onRequestDone?.({ method, route, status, elapsedMs })
}
