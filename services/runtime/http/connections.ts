/**
 * The connections of a public port. An address has a bounded number of them, and each has one request in progress (see
 * `request-gate.ts`). A trusted proxy carries many clients, so only the second limit applies to it.
 *
 * A connection is a stranger's unless its latest request had valid credentials. Strangers get little, so that nobody can keep
 * others out without credentials:
 * - They have few connections, for each address and in total. At a bound, a new one takes the place of the oldest
 *   stranger, so a valid key behind the same address gets in. Its first request decides whether it is a stranger's.
 * - A new connection waits in its address's line. It is nothing but a socket there, so many may wait, and none is closed that would only
 *   be opened again at once.
 * - A connection that is idle is closed early. On a port without credentials, a new one takes the place of the one that is idle for longest:
 *   at the bound of its address, of that address, and at the server's `maxConnections`, of all. If none is idle when the last place is
 *   taken, the next connection that has its answer ends.
 * - A stranger's requests sent ahead are never handled: the answer to the first one ends the connection.
 * - All connections of strangers of one address share one turn (see `request-gate.ts`).
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { addressBucket } from './addresses.ts'
import {
  aheadBytesMax,
  createSharedTurn,
  gateRequests,
  type RequestGate,
  type SharedTurn,
} from './request-gate.ts'

interface ConnectionsOptions {
  /** Connections of one address that may be open at once. IPv6: of one /64. */
  perAddressMax: number
  isTrustedProxy: (address: string | undefined) => boolean
  /**
   * For a port with credentials. Default: every connection is a stranger's, and `perAddressMax` and the server's `maxConnections` are the only
   * bounds on their number. At each of them, a new one takes the place of the one that is idle for longest.
   */
  strangers?: StrangersOptions
}

interface StrangersOptions {
  /** Connections of strangers that may be served at once: of one address, and in total. */
  perAddressMax: number
  max: number
  /** Time until a connection of a stranger is closed on which nothing has arrived since its last answer, ms. */
  keepAliveMs: number
}

export type Connections = ReturnType<typeof createConnections>

interface Connection {
  gate: RequestGate
  /** `undefined`: a trusted proxy. */
  address: Address | undefined
  place: Place
}

/**
 * Where a connection is. `waiting`: it has not had its first turn. `known`: its latest request had valid credentials. On a port without
 * credentials a connection is `idle`, or `busy` with a request.
 */
type Place = 'waiting' | 'stranger' | 'known' | 'idle' | 'busy' | 'gone'

/** Those that may have to leave for another one. In each line, the one that is there for longest comes first. */
function newLines() {
  return { waiting: new Set<Socket>(), stranger: new Set<Socket>(), idle: new Set<Socket>() }
}

interface Address {
  open: number
  turn: SharedTurn
  lines: ReturnType<typeof newLines>
}

/** Creates the book of the connections of one server. */
export function createConnections(options: ConnectionsOptions) {
  const { perAddressMax, isTrustedProxy, strangers: bounds } = options
  /** The open ones. Not a WeakMap: Node's quick collections keep a closed socket, and with it all that hangs on it. */
  const connections = new Map<Duplex, Connection>()
  const addresses = new Map<string, Address>()
  /** Of all addresses. */
  const all = newLines()
  /** The bound of the server. */
  let maxOfServer = () => Number.POSITIVE_INFINITY

  /** `serve` puts Node's parser on the connection. */
  function admit(socket: Socket, serve: () => void): void {
    // With the last place taken, Node would refuse the next one before it is seen here.
    const takesLast = connections.size + 1 >= maxOfServer()
    socket.once('close', () => connections.delete(socket))
    if (isTrustedProxy(socket.remoteAddress)) {
      if (takesLast) endOldest(all.idle)
      const gate = gateRequests(socket, serve)
      connections.set(socket, { gate, address: undefined, place: 'known' })
      gate.open()
      return
    }
    const bucket = addressBucket(socket.remoteAddress)
    const address = addresses.get(bucket) ?? { open: 0, turn: createSharedTurn(), lines: newLines() }
    const isFull = address.open >= perAddressMax
    const { stranger, idle, waiting } = address.lines
    if (isFull && !endOldest(stranger) && !endOldest(idle) && !endOldest(waiting)) {
      socket.destroy()
      return
    }
    // One of an address that is full takes a place of that address.
    if (takesLast && !isFull) endOldest(all.idle)
    address.open++
    addresses.set(bucket, address)
    const begin = () => {
      if (socket.destroyed) return
      move(socket, connection, bounds ? 'stranger' : 'idle')
      serve()
    }
    const gate = gateRequests(socket, begin, () => (connection.place === 'known' ? undefined : address.turn))
    const connection: Connection = { gate, address, place: 'waiting' }
    connections.set(socket, connection)
    for (const lines of [address.lines, all]) lines.waiting.add(socket)
    socket.once('close', () => {
      move(socket, connection, 'gone')
      address.open--
      if (address.open > 0) return
      // Not before its turn is free: otherwise each of many connections, one after the other, would have a turn of its own.
      address.turn.wait(() => {
        if (address.open === 0 && addresses.get(bucket) === address) addresses.delete(bucket)
      })
    })
    gate.open()
  }

  /** Ends the oldest of these connections. Returns whether there is one. */
  function endOldest([oldest]: Set<Socket>): boolean {
    const connection = oldest && connections.get(oldest)
    if (!connection) return false
    // Its event `close` comes later.
    move(oldest, connection, 'gone')
    oldest.destroy()
    return true
  }

  /** At a bound, a stranger takes the place of the oldest one. */
  function move(socket: Socket, connection: Connection, to: Place): void {
    const { address, place } = connection
    if (!address || place === to || place === 'gone') return
    for (const [lines, strangersMax = 0] of [
      [address.lines, bounds?.perAddressMax],
      [all, bounds?.max],
    ] as const) {
      const line: Partial<Record<Place, Set<Socket>>> = lines
      line[place]?.delete(socket)
      if (to === 'stranger' && lines.stranger.size >= strangersMax) endOldest(lines.stranger)
      line[to]?.add(socket)
    }
    connection.place = to
  }

  /** Until the response is closed. Another request may be in progress by then. */
  function leaveIdle(socket: Socket, response: ServerResponse, connection: Connection): void {
    if (!connection.address) return
    move(socket, connection, 'busy')
    response.once('close', () => {
      if (socket.destroyed || connection.gate.latest() !== response) return
      // With every place taken, Node would refuse the next connection before it is seen here.
      if (connections.size >= maxOfServer()) socket.destroy()
      else move(socket, connection, 'idle')
    })
  }

  return {
    /**
     * Follows the connections of this server. Its request handler has to be there. `answerDirectly` is asked first. It
     * returns whether it has answered, which it only does if the credentials are valid.
     */
    listen(
      server: Server,
      answerDirectly = (_request: IncomingMessage, _response: ServerResponse) => false,
    ): void {
      const handlers = server.listeners('request') as RequestListener[]
      server.removeAllListeners('request')
      const servers = server.listeners('connection') as ((socket: Socket) => void)[]
      server.removeAllListeners('connection')
      // Options of `net.createServer`. The first is one that `http.createServer` does not pass on.
      Object.assign(server, { pauseOnConnect: true, highWaterMark: aheadBytesMax })
      maxOfServer = () => server.maxConnections ?? Number.POSITIVE_INFINITY
      server.on('connection', socket =>
        admit(socket, () => {
          for (const serve of servers) serve.call(server, socket)
        }),
      )
      server.on('connect', (request: IncomingMessage, socket: Duplex) => {
        connections.get(request.socket)?.gate.remove()
        // Node has removed its own listeners from this socket. Without an error listener, an error would end the process.
        socket.on('error', () => socket.destroy())
        // Without this listener, Node would end the connection. Another one answers it.
        if (server.listenerCount('connect') === 1) socket.destroy()
      })
      // Ignore `Expect`: no body is wanted, so there is nothing to continue, and other expectations have no meaning here.
      const answerAsRequest = (request: IncomingMessage, response: ServerResponse) => {
        response.shouldKeepAlive = false
        server.emit('request', request, response)
      }
      server.on('checkContinue', answerAsRequest)
      server.on('checkExpectation', answerAsRequest)
      server.on('request', (request, response) => {
        const connection = connections.get(request.socket)
        if (connection === undefined) return
        connection.gate.begin(response)
        if (!bounds) leaveIdle(request.socket, response, connection)
        // No credentials can follow. With a header of its own, an answer would not end the connection.
        if (!bounds && connection.address && isAhead(request)) response.shouldKeepAlive = false
        if (answerDirectly(request, response)) move(request.socket, connection, 'known')
        else for (const handle of handlers) handle.call(server, request, response)
      })
    },

    /** For a port with credentials. Call this for every request when it is known whether its credentials are valid. */
    identify({ socket }: IncomingMessage, isValid: boolean): void {
      const connection = connections.get(socket)
      if (connection && !socket.destroyed) move(socket, connection, isValid ? 'known' : 'stranger')
    },

    /** The response to the latest request on this connection. */
    latestResponse: (socket: Duplex) => connections.get(socket)?.gate.latest(),

    /** The headers with which a response says how long its connection stays. `endsIt`: the connection ends with it. */
    headersOf(response: ServerResponse, endsIt: boolean): Record<string, string> {
      const { socket } = response.req
      const connection = connections.get(socket)
      if (!connection?.address || !response.shouldKeepAlive) return {}
      const isStranger = connection.place !== 'known'
      if (endsIt || (isStranger && isAhead(response.req))) return { connection: 'close' }
      if (!isStranger || !bounds) return {}
      // Node has set its own time by then. It sets it again with the next request.
      response.once('close', () => socket.setTimeout(bounds.keepAliveMs))
      return {
        connection: 'keep-alive',
        // A second less, so that a client does not send a request on a connection that is being closed.
        'keep-alive': `timeout=${Math.max(0, Math.floor(bounds.keepAliveMs / 1000) - 1)}`,
      }
    },
  }
}

/** Whether more than the body has arrived behind this request. A body without a length counts as more. */
function isAhead({ socket, headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  return socket.readableLength > Number(headers['content-length'] ?? 0)
}
