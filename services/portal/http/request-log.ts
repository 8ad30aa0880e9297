/** One log line per request. It has the route, not the address: addresses of sign-in links carry secrets. */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

/** Logs every answer of the app. */
export function addRequestLog(app: FastifyInstance, logger: Logger): void {
  app.addHook('onResponse', async (request, reply) => {
    logger.info(
      {
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
        status: reply.statusCode,
        elapsedMs: Math.round(reply.elapsedTime),
      },
      'portal request',
    )
  })
}
