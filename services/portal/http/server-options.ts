/** The limits of the portal's HTTP server: everything that a client can send or hold is bounded. */
import type { FastifyHttpOptions, FastifyInstance, RawServerDefault } from 'fastify'
import type { Logger } from 'pino'
import { issueMsMax } from '../../api-keys/api-keys.ts'
import { appendMsMax } from '../keys/portal-keys.ts'

const headerBytesMax = 16 * 1024
const bodyBytesMax = 32 * 1024
const headersMsMax = 10_000
const requestMsMax = 15_000
// Above the 60 s after which proxies close an idle connection: a form must not be sent on one that is just being closed here.
const idleMsMax = 65_000
// Time without any traffic on a connection with a running request. Making a key waits for three appends and a few reads of the tables, too.
// A proxy has to wait for longer (deploy/balancer/haproxy.cfg).
const silenceMsMax = issueMsMax + 3 * appendMsMax + 10_000

/** Fastify's options. Bytes that are no request get Fastify's own answer, and the connection ends. */
export const serverOptions: FastifyHttpOptions<RawServerDefault> = {
  logger: false,
  bodyLimit: bodyBytesMax,
  requestTimeout: requestMsMax,
  keepAliveTimeout: idleMsMax,
  connectionTimeout: silenceMsMax,
  return503OnClosing: false,
  routerOptions: { maxParamLength: 200, ignoreTrailingSlash: true },
  http: {
    maxHeaderSize: headerBytesMax,
    headersTimeout: headersMsMax,
    // A request without a host is refused by a page of ours.
    requireHostHeader: false,
    connectionsCheckingInterval: 1_000,
  },
}

/* One log line per request. It has the route, not the address: addresses of sign-in links carry secrets. */

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
