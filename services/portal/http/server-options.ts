/** The limits of the portal's HTTP server: everything that a client can send or hold is bounded. */
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance, RawServerDefault } from 'fastify'
import type { Logger } from 'pino'
import { errorText } from './pages.ts'

const headerBytesMax = 16 * 1024
const bodyBytesMax = 32 * 1024
const headersMsMax = 10_000
const requestMsMax = 15_000
const idleMsMax = 30_000
// Time without any traffic on a connection with a running request. Making a key takes up to 15 s.
const silenceMsMax = 60_000

/** Fastify's options. `headers` are sent with errors that Node answers before Fastify has the request. */
export function serverOptions(headers: Record<string, string>): FastifyHttpOptions<RawServerDefault> {
  return {
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
    clientErrorHandler: (error: NodeJS.ErrnoException, socket) => answerClientError(error, socket, headers),
  }
}

/** Answers bytes that are no request. The connection ends with it. */
function answerClientError(
  { code }: NodeJS.ErrnoException,
  socket: Socket,
  headers: Record<string, string>,
): void {
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const status = code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : code === 'HPE_HEADER_OVERFLOW' ? 431 : 400
  const body = `${errorText(status)[1]}\n`
  const lines = Object.entries({
    ...headers,
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  socket.destroySoon()
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
