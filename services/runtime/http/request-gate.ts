/**
 * The gate in front of Node's HTTP parser. The parser builds a request and a response for everything that one read
 * brings, and one read brings thousands of small requests. So it gets them one at a time, and the rest stays bytes:
 *
 * - A connection has one request in progress. What it sends ahead waits in its socket, which stops reading: that is
 *   `aheadBytesMax`, and one read of 64 KiB.
 * - A read is freed as soon as nobody needs it. Left to V8, a flood means several long (major) collections a second.
 * - The next request follows in a later turn of the event loop. Other connections come first.
 * - Connections that share a turn (`createSharedTurn`) together get one request every 2 ms: a turn of the event loop also accepts
 *   just one connection, so a request in every turn would let others wait long for a connection.
 *
 * The gate does not interpret requests. It passes bytes on up to the next empty line, and such a piece holds the end of
 * at most one head. The body of a request in progress passes, too. Its last piece may hold the next head, so two requests
 * may be in progress.
 *
 * A body of unknown length may be one byte a chunk, and each chunk is a callback. None that is wanted here is long, so a long one ends
 * its connection.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How much a socket reads ahead before it stops, in bytes: its `highWaterMark`. */
export const aheadBytesMax = 16_384

/** Bytes of a body in chunks, with the lengths of its chunks. The forms of the portal are far shorter. */
const chunkedBytesMax = 65_536
const turnMs = 2
const headEnd = Buffer.from('\r\n\r\n')

export type SharedTurn = ReturnType<typeof createSharedTurn>

/** One of its users runs at a time, for `turnMs`. The others wait in line. */
export function createSharedTurn() {
  const waiting = new Set<() => void>()
  let isTaken = false

  /** Whether the turn is free. If so, it is taken now. */
  function take(): boolean {
    if (isTaken) return false
    isTaken = true
    setTimeout(release, turnMs)
    return true
  }

  function release(): void {
    isTaken = false
    const [next] = waiting
    if (next === undefined) return
    waiting.delete(next)
    take()
    next()
  }

  return {
    take,
    /** Calls back when the turn is free, and it is taken then. Returns how to leave the line. */
    wait(run: () => void): () => void {
      waiting.add(run)
      // Free now: the next turn calls back.
      take()
      return () => void waiting.delete(run)
    },
  }
}

export type RequestGate = ReturnType<typeof gateRequests>

/**
 * The gate of a new connection, which is paused. `serve` puts Node's parser on it. `sharedTurn`: the turn that it shares with
 * others at present, if it does.
 */
export function gateRequests(
  socket: Socket,
  serve: () => void,
  sharedTurn: () => SharedTurn | undefined = () => undefined,
) {
  let parse: ((chunk: Buffer) => void) | undefined
  const endOfHead = createHeadFinder()
  let running = 0
  let latest: ServerResponse | undefined
  /** The bytes that have waited last. */
  let ahead: Buffer | undefined
  /** Whether bytes wait in the socket. */
  let isWaiting = false
  let isTurnDue = false
  let leaveLine = ignore
  /** Whether the shared turn is ours. */
  let hasTurn = false
  let chunkedBytes = 0

  const isBusy = () => running > 1 || (running === 1 && latest?.req.complete === true)

  function take(chunk: Buffer): void {
    // The last answer has been sent.
    if (!socket.writable) {
      free(chunk)
      return
    }
    if (isWaiting || isBusy() || !isOurTurn()) {
      wait(chunk)
      return
    }
    hasTurn = false
    if (isChunked(latest)) chunkedBytes += chunk.length
    if (chunkedBytes > chunkedBytesMax) {
      socket.destroy()
      return
    }
    const end = endOfHead(chunk)
    if (end < 0 || end === chunk.length) {
      parse?.(chunk)
      free(chunk)
      return
    }
    // First, so that the request's handler can see whether more was sent ahead.
    wait(chunk.subarray(end))
    parse?.(chunk.subarray(0, end))
    // Node resumes the socket after each request.
    socket.pause()
  }

  /** The body of a request in progress needs no turn. */
  function isOurTurn(): boolean {
    return hasTurn || running > 0 || sharedTurn()?.take() !== false
  }

  function wait(chunk: Buffer): void {
    isWaiting = true
    socket.pause()
    socket.unshift(chunk)
    ahead = chunk
    nextTurn()
  }

  function nextTurn(): void {
    if (isTurnDue) return
    isTurnDue = true
    const shared = sharedTurn()
    const open = () => {
      isTurnDue = false
      if (isBusy()) return
      isWaiting = false
      hasTurn = shared !== undefined
      if (parse) socket.resume()
      else start()
    }
    if (shared) leaveLine = shared.wait(open)
    else setImmediate(open)
  }

  function end(): void {
    running--
    if (isWaiting && socket.writable) nextTurn()
  }

  function start(): void {
    socket.removeListener('error', ignore)
    serve()
    ;[parse] = socket.listeners('data') as ((chunk: Buffer) => void)[]
    if (parse === undefined) throw new Error('the socket has no HTTP parser')
    socket.removeListener('data', parse)
    socket.on('data', take)
    socket.resume()
  }

  socket.on('error', ignore)
  socket.once('close', () => {
    leaveLine()
    // A quick collection keeps a closed socket. Under a flood, copying what hung on it took tens of milliseconds.
    latest = undefined
    if (ahead !== undefined) free(ahead)
  })
  return {
    /** Call this first. The connection is served from its first turn on. Until then nothing is read, and it has no parser. */
    open(): void {
      if (isOurTurn()) {
        hasTurn = true
        start()
      } else {
        isWaiting = true
        nextTurn()
      }
    },
    /** Call this for every request, before it is handled. The gate opens again when the response is closed. */
    begin(response: ServerResponse): void {
      running++
      chunkedBytes = 0
      latest = response
      response.on('close', end)
    },
    /** The response to the latest request. */
    latest: () => latest,
    /** This connection has no more requests: what still comes on it is dropped. */
    remove: () => void socket.off('data', take).on('data', free),
  }
}

/** Each read of a socket has a buffer of its own, and the parser copies what it keeps. */
function free({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0)
}

function ignore(): void {}

/** Whether the body of this request is still arriving, and in chunks. */
function isChunked(response: ServerResponse | undefined): boolean {
  return response?.req.complete === false && response.req.headers['transfer-encoding'] !== undefined
}

/** Returns a function that finds the first end of a head in the next bytes of a connection, or else returns -1. */
export function createHeadFinder(): (chunk: Buffer) => number {
  /** The last bytes before the chunk. An end of a head may have begun there. */
  let before = ''
  return chunk => {
    const seam = before === '' ? -1 : (before + chunk.toString('latin1', 0, 3)).indexOf('\r\n\r\n')
    // Empty lines before a head are not its end. Each of them would take a turn.
    const start = before === '' ? firstOfLine(chunk) : 0
    const place = seam >= 0 ? seam - before.length : start < 0 ? -1 : chunk.indexOf(headEnd, start)
    if (seam < 0 && place < 0) {
      before = (before + chunk.subarray(-3).toString('latin1')).slice(-3)
      return -1
    }
    before = ''
    return place + headEnd.length
  }
}

/** The place of the first byte that ends no line, or -1. A callback for each byte would take ten times as long. */
function firstOfLine(chunk: Buffer): number {
  for (let place = 0; place < chunk.length; place++) {
    if (chunk[place] !== 13 && chunk[place] !== 10) return place
  }
  return -1
}
