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
import { aheadBytesMax, createSharedTurn, gateRequests, type RequestGate } from './request-gate.ts'

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
  isStranger: boolean
}

function newAddress() {
  return {
    open: 0,
    turn: createSharedTurn(),
    /** The oldest first. */
    strangers: new Set<Socket>(),
    /** Those that have not had their first turn, the oldest first. */
    waiting: new Set<Socket>(),
    /** Without strangers' bounds: those that are served and have no request in progress, the one that is idle for longest first. */
    idle: new Set<Socket>(),
  }
}

type Address = ReturnType<typeof newAddress>

/** Creates the book of the connections of one server. */
export function createConnections(options: ConnectionsOptions) {
  const { perAddressMax, isTrustedProxy, strangers: bounds } = options
  /** The open ones. Not a WeakMap: Node's quick collections keep a closed socket, and with it all that hangs on it. */
  const connections = new Map<Duplex, Connection>()
  const addresses = new Map<string, Address>()
  /** Of all addresses, the oldest first. */
  const strangers = new Set<Socket>()
  /** Of all addresses, the one that is idle for longest first. */
  const idle = new Set<Socket>()
  /** The bound of the server. */
  let maxOfServer = () => Number.POSITIVE_INFINITY

  /** `serve` puts Node's parser on the connection. */
  function admit(socket: Socket, serve: () => void): void {
    // With the last place taken, Node would refuse the next one before it is seen here.
    const takesLast = connections.size + 1 >= maxOfServer()
    socket.once('close', () => connections.delete(socket))
    if (isTrustedProxy(socket.remoteAddress)) {
      if (takesLast) endOldest(idle)
      const gate = gateRequests(socket, serve)
      connections.set(socket, { gate, address: undefined, isStranger: false })
      gate.open()
      return
    }
    const bucket = addressBucket(socket.remoteAddress)
    const address = addresses.get(bucket) ?? newAddress()
    const isFull = address.open >= perAddressMax
    const { strangers, waiting } = address
    if (isFull && !endOldest(strangers) && !endOldest(address.idle) && !endOldest(waiting)) {
      socket.destroy()
      return
    }
    // One of an address that is full takes a place of that address.
    if (takesLast && !isFull) endOldest(idle)
    address.open++
    addresses.set(bucket, address)
    const begin = () => {
      if (socket.destroyed) return
      address.waiting.delete(socket)
      count(socket, address, true)
      if (!bounds) rest(socket, address)
      serve()
    }
    const gate = gateRequests(socket, begin, () => (connection.isStranger ? address.turn : undefined))
    const connection: Connection = { gate, address, isStranger: true }
    connections.set(socket, connection)
    address.waiting.add(socket)
    socket.once('close', () => {
      leave(socket, address)
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
    const address = oldest && connections.get(oldest)?.address
    if (!oldest || !address) return false
    // Its event `close` comes later.
    leave(oldest, address)
    oldest.destroy()
    return true
  }

  /** Until the response is closed. Another request may be in progress by then. */
  function leaveIdle(socket: Socket, response: ServerResponse, { address, gate }: Connection): void {
    if (!address) return
    wake(socket, address)
    response.once('close', () => {
      if (socket.destroyed || gate.latest() !== response) return
      // With every place taken, Node would refuse the next connection before it is seen here.
      if (connections.size >= maxOfServer()) socket.destroy()
      else rest(socket, address)
    })
  }

  function rest(socket: Socket, address: Address): void {
    address.idle.add(socket)
    idle.add(socket)
  }

  function wake(socket: Socket, address: Address): void {
    address.idle.delete(socket)
    idle.delete(socket)
  }

  function leave(socket: Socket, address: Address): void {
    address.waiting.delete(socket)
    wake(socket, address)
    count(socket, address, false)
  }

  function mark(socket: Socket, connection: Connection, isStranger: boolean): void {
    const { address } = connection
    if (!address || connection.isStranger === isStranger) return
    connection.isStranger = isStranger
    count(socket, address, isStranger)
  }

  function count(socket: Socket, address: Address, isStranger: boolean): void {
    if (!bounds) return
    for (const [set, max] of [
      [address.strangers, bounds.perAddressMax],
      [strangers, bounds.max],
    ] as const) {
      if (!isStranger) {
        set.delete(socket)
        continue
      }
      if (set.size >= max) endOldest(set)
      set.add(socket)
    }
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
        if (!bounds && connection.isStranger && isAhead(request)) response.shouldKeepAlive = false
        if (answerDirectly(request, response)) mark(request.socket, connection, false)
        else for (const handle of handlers) handle.call(server, request, response)
      })
    },

    /** Call this for every request when it is known whether its credentials are valid. */
    identify({ socket }: IncomingMessage, isValid: boolean): void {
      const connection = connections.get(socket)
      if (connection && !socket.destroyed) mark(socket, connection, !isValid)
    },

    /** The response to the latest request on this connection. */
    latestResponse: (socket: Duplex) => connections.get(socket)?.gate.latest(),

    /** The headers with which a response says how long its connection stays. `endsIt`: the connection ends with it. */
    headersOf(response: ServerResponse, endsIt: boolean): Record<string, string> {
      const { socket } = response.req
      const connection = connections.get(socket)
      if (!connection?.address || !response.shouldKeepAlive) return {}
      const { isStranger } = connection
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
