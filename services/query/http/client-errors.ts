/**
 * Responses for input that never becomes a request of the app: bytes that the HTTP parser refuses, requests that do not
 * arrive in time, and CONNECT. These responses have the same shape and headers as every other error, and close the
 * connection.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ErrorCode, errorBody } from '../../../contracts/api/errors.ts'
import type { Connections } from '../../runtime/http/connections.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { isResource } from '../endpoints/all.ts'
import type { Admission, Admissions } from './admission.ts'
import { commonHeaders, type Refusal, type ResponseHeaders, refusal } from './answer.ts'
import type { Publications } from './publications.ts'
import type { RequestLog } from './request-log.ts'

/** What answers are made from. */
interface ClientErrorParts {
  admissions: Admissions
  connections: Connections
  publications: () => Publications
  newRequestId: () => string
  requestLog: RequestLog
}

/** The parts of a socket that are used here. */
type Connection = Duplex & { remoteAddress?: string | undefined }

// Time for a client to read its answer and to stop sending. After it the connection is cut.
const lingerMsMax = 1000

/** Creates the handlers of client errors. Call `listen` with the server before it accepts connections. */
export function createClientErrors(
  { admissions, connections, publications, newRequestId, requestLog }: ClientErrorParts,
  { now, monotonicMs, logger }: Pick<Runtime, 'now' | 'monotonicMs' | 'logger'>,
) {
  const answered = new WeakSet<Duplex>()

  // Answers keep the order of the requests, so this one waits until the response in progress is finished.
  function inOrder(socket: Connection, answer: () => void): void {
    const latest = connections.latestResponse(socket)
    // If the body of an answered request breaks off, there is no further request to answer.
    const answerOrEnd = () => (latest?.req.complete === false ? socket.destroy() : answer())
    if (latest === undefined || latest.writableFinished) answerOrEnd()
    else latest.once('close', answerOrEnd)
  }

  async function answerConnection(socket: Connection, code: ErrorCode, request?: IncomingMessage) {
    const startedAt = monotonicMs()
    const requestId = newRequestId()
    let admission: Admission
    try {
      admission = request
        ? await admissions.admit(request, socket.remoteAddress)
        : await admissions.admitAddress(socket.remoteAddress)
    } catch (error) {
      // The request is answered anyway.
      logger.error({ err: error }, 'the admission of a request failed')
      admission = admissions.unknown()
    }
    // An unreadable request gets its own error even if its bucket is empty, because the connection ends here anyway.
    const answer = refusal(errorBody(code, publications().documentationUrl))
    const headers: ResponseHeaders = {
      ...commonHeaders(requestId, admission.decision, now()),
      ...answer.headers,
      connection: 'close',
      date: new Date(now()).toUTCString(),
    }
    endConnection(socket, serialise(answer, headers))
    requestLog.reportClientError(requestId, admission, answer, monotonicMs() - startedAt)
  }

  return {
    /** Answers input that the HTTP parser refused, and requests that timed out. For Fastify's option `clientErrorHandler`. */
    handle(error: ParserError, socket: Connection): void {
      // The parser reports another error for every chunk that follows.
      if (answered.has(socket)) return
      answered.add(socket)
      if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy()
        return
      }
      // Now: the bytes are freed after this call.
      const code = codeOf(error)
      inOrder(socket, () => answerConnection(socket, code))
    },

    /** Answers CONNECT on this server. */
    listen(server: Server): void {
      server.on('connect', (request: IncomingMessage, socket: Connection) => {
        inOrder(socket, () => answerConnection(socket, 'method_not_allowed', request))
      })
    },
  }
}

interface ParserError extends Error {
  code?: string
  rawPacket?: Buffer
  /** The offset in the packet at which the parser stopped. */
  bytesParsed?: number
}

/** Maps an error of the parser to an error code. Pure. */
function codeOf({ code, rawPacket, bytesParsed = 0 }: ParserError): ErrorCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  if (code !== 'HPE_INVALID_METHOD') return 'malformed_request'
  // A method that the parser does not know is answered like any other unsupported method.
  const target = requestLinePattern.exec(lineAt(rawPacket, bytesParsed))?.[1]
  if (target === undefined) return 'malformed_request'
  return isResource(target) ? 'method_not_allowed' : 'not_found'
}

const requestLinePattern = /^[!#$%&'*+.^_`|~\w-]+ ((?:https?:\/)?\/\S*) HTTP\/1\.[01]\r?$/i

function lineAt(packet: Buffer | undefined, place: number): string {
  const text = packet?.toString('latin1') ?? ''
  const start = place === 0 ? 0 : text.lastIndexOf('\n', place - 1) + 1
  return text.slice(start).split('\n', 1)[0] ?? ''
}

function serialise({ status, body }: Refusal, headers: ResponseHeaders): string {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)) })
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
    '',
    body,
  ].join('\r\n')
}

// If the socket were closed with unread bytes, the system would reset the connection and the client would lose its
// answer. So the remaining bytes are read and discarded, for a bounded time.
function endConnection(socket: Connection, answer: string): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const cut = setTimeout(() => socket.destroy(), lingerMsMax)
  socket.once('close', () => clearTimeout(cut))
  socket.end(answer)
  socket.resume()
}
