/**
 * Answers for what never becomes a request of the app: bytes that the HTTP parser refuses, requests that do not arrive
 * in time, and CONNECT. They have the same shape and the same headers as every other error, and end the connection.
 */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../../../contracts/api/errors.ts'
import type { Admission, Admissions } from './admission.ts'
import { commonHeaders, type ResponseHeaders, rateLimitHeaders } from './headers.ts'
import { isResource, type Refusal, refusal } from './refusals.ts'

export interface UnreadableDependencies {
  admissions: Pick<Admissions, 'admit' | 'admitAddress' | 'unknown'>
  newRequestId: () => string
  /** Unix milliseconds. */
  now: () => number
  /** Told of every answer, for log and metrics. */
  onDone: (done: { requestId: string; code: ErrorCode; status: number; elapsedMs: number }) => void
  /** Told of admissions that failed; they are answered all the same. */
  onError: (error: unknown) => void
}

/** The socket of a connection, as far as it matters here. */
type Connection = Duplex & { remoteAddress?: string | undefined }

// How long a client may take to read its answer and to stop sending, before the connection is cut.
const lingerMsMax = 1000

/** Makes the server answer the unreadable. Replaces the server's listeners for `clientError`. */
export function answerUnreadable(server: Server, dependencies: UnreadableDependencies): void {
  const latestResponses = new WeakMap<Duplex, ServerResponse>()
  const answered = new WeakSet<Duplex>()

  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    latestResponses.set(request.socket, response)
  })

  server.removeAllListeners('clientError')
  server.on('clientError', (error: ParserError, socket: Connection) => {
    // The parser complains again about every chunk that follows.
    if (answered.has(socket)) return
    answered.add(socket)
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    inTurn(socket, () => answerConnection(socket, codeOf(error), dependencies))
  })

  server.on('connect', (request: IncomingMessage, socket: Connection) => {
    // Node has let go of the connection with all its listeners: an error that nobody hears would end the process.
    socket.on('error', () => socket.destroy())
    inTurn(socket, () => answerConnection(socket, 'method_not_allowed', dependencies, request))
  })

  // Answers keep the order of the requests: those in progress come first.
  function inTurn(socket: Connection, answer: () => void): void {
    const latest = latestResponses.get(socket)
    // A body that breaks off after its request was answered is no request that wants an answer.
    const answerOrEnd = () => (latest?.req.complete === false ? socket.destroy() : answer())
    if (latest === undefined || latest.writableFinished) answerOrEnd()
    else latest.once('close', answerOrEnd)
  }

  // An expectation other than 100-continue is the client's own; and no body is wanted, so nothing is to be continued.
  const answerAsRequest = (request: IncomingMessage, response: ServerResponse) => {
    response.shouldKeepAlive = false
    server.emit('request', request, response)
  }
  server.on('checkContinue', answerAsRequest)
  server.on('checkExpectation', answerAsRequest)
}

interface ParserError extends Error {
  code?: string
  rawPacket?: Buffer
  /** Where in the packet the parser stopped. */
  bytesParsed?: number
}

/** The error code for what the parser says. Pure. */
export function codeOf({ code, rawPacket, bytesParsed = 0 }: Omit<ParserError, keyof Error>): ErrorCode {
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'request_timeout'
  if (code !== 'HPE_INVALID_METHOD') return 'malformed_request'
  // A method that the parser does not know is a method like any other that is not supported.
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

async function answerConnection(
  socket: Connection,
  code: ErrorCode,
  { admissions, newRequestId, now, onDone, onError }: UnreadableDependencies,
  request?: IncomingMessage,
): Promise<void> {
  const startedAt = now()
  const requestId = newRequestId()
  let admission: Admission
  try {
    admission = request
      ? await admissions.admit({ request, address: socket.remoteAddress })
      : await admissions.admitAddress(socket.remoteAddress)
  } catch (error) {
    onError(error)
    admission = admissions.unknown()
  }
  // What cannot be read is told so even when the bucket is empty: the connection ends here anyway.
  const answer = refusal(code)
  const headers: ResponseHeaders = {
    ...commonHeaders(requestId),
    ...rateLimitHeaders(admission.decision, { windowMs: admission.windowMs, now: now() }),
    ...answer.headers,
    connection: 'close',
    date: new Date(now()).toUTCString(),
  }
  endConnection(socket, serialise(answer, headers))
  onDone({ requestId, code, status: answer.status, elapsedMs: now() - startedAt })
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

// Closing with bytes unread would make the system reset the connection, and the client lose its answer: so what still
// arrives is read and thrown away, for a bounded time.
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
