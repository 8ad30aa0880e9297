/**
 * The connections of the public port, by what is known of the client. A connection is a stranger's until a request on it
 * has had valid credentials. Strangers get little, so that one address without credentials cannot keep others out:
 * - An address has a bounded number of connections. At the bound, a new one takes the place of its oldest stranger, so a
 *   valid key behind the same address gets in. If there is no stranger, the new one is closed.
 * - A stranger's connection that is idle is closed early, and it ends after a bounded number of requests.
 * - Requests that a stranger sends ahead wait for the answers before them, one per turn of the event loop. Nothing more
 *   is read until then. If the connection ends before their turn, they are dropped unread.
 * - What a stranger sends ahead beyond its number of requests is held, and nothing looks at it. It is handled if a
 *   request before it has valid credentials. Otherwise it is dropped when the connection ends.
 *
 * A trusted proxy carries many clients on one connection, so none of this holds for it.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { addressBucket } from '../../shared/address-bucket.ts'
import type { ResponseHeaders } from './headers.ts'

export interface ConnectionsOptions {
  /** Connections of one address that may be open at once. IPv6: of one /64. */
  perAddressMax: number
  /** Time until a connection of a stranger is closed on which nothing has arrived since its last answer, ms. */
  strangerKeepAliveMs: number
  /** Requests on one connection of a stranger. */
  strangerRequestsMax: number
  isTrustedProxy: (address: string | undefined) => boolean
}

export interface Connections {
  /**
   * Follows the connections of this server. Its request handler has to be there. `answerDirectly` is asked first for the
   * requests of clients that are no strangers. It returns whether it has answered.
   */
  listen(
    server: Server,
    answerDirectly?: (request: IncomingMessage, response: ServerResponse) => boolean,
  ): void
  /**
   * `true` if it is the request's turn now. Otherwise it resolves when it is, or with `false` if the connection ends
   * before: then no answer can be sent, and the request must not be handled.
   */
  turn(request: IncomingMessage, response: ServerResponse): true | Promise<boolean>
  /** A request of this connection had valid credentials: it is no stranger's from now on. */
  recognise(request: IncomingMessage): void
  /** The headers with which a response says how long its connection stays. `endsIt`: the connection ends with it. */
  headersOf(response: ServerResponse, endsIt: boolean): ResponseHeaders
}

interface Stranger {
  bucket: string
  requests: number
  /** The response that is under way. */
  current: ServerResponse | undefined
  waiting: { response: ServerResponse; resolve: (isTurn: boolean) => void }[]
  /** Handles the requests beyond the number that a stranger has. Not more than one read brings: the socket is paused. */
  held: (() => void)[]
  isEnding: boolean
  idle: NodeJS.Timeout | undefined
}

/** Creates the book of the connections of one server. */
export function createConnections(options: ConnectionsOptions): Connections {
  const { perAddressMax, strangerKeepAliveMs, strangerRequestsMax, isTrustedProxy } = options
  const strangers = new WeakMap<Socket, Stranger>()
  const addresses = new Map<string, { open: number; strangers: Set<Socket> }>()

  function admit(socket: Socket): void {
    if (isTrustedProxy(socket.remoteAddress)) return
    const bucket = addressBucket(socket.remoteAddress)
    const address = addresses.get(bucket) ?? { open: 0, strangers: new Set() }
    if (address.open >= perAddressMax) {
      const [oldest] = address.strangers
      if (oldest === undefined) {
        socket.destroy()
        return
      }
      // Its close event comes later.
      address.strangers.delete(oldest)
      oldest.destroy()
    }
    address.open++
    address.strangers.add(socket)
    addresses.set(bucket, address)
    const stranger: Stranger = {
      bucket,
      requests: 0,
      current: undefined,
      waiting: [],
      held: [],
      isEnding: false,
      idle: undefined,
    }
    strangers.set(socket, stranger)
    socket.once('close', () => {
      address.open--
      address.strangers.delete(socket)
      if (address.open === 0) addresses.delete(bucket)
      drop(stranger)
    })
  }

  function drop(stranger: Stranger): void {
    stranger.isEnding = true
    clearTimeout(stranger.idle)
    for (const { resolve } of stranger.waiting.splice(0)) resolve(false)
    stranger.held = []
  }

  /**
   * Handles a request, unless the connection ends before its turn. One read brings more than a thousand small requests,
   * and all of them would become work. But the first of them may have valid credentials, and only its handler knows.
   */
  function handleOrHold({ socket }: IncomingMessage, handle: () => void): void {
    const stranger = strangers.get(socket)
    if (stranger?.isEnding) return
    const isSurplus = stranger && stranger.requests + stranger.waiting.length >= strangerRequestsMax
    if (isSurplus) stranger.held.push(handle)
    else handle()
  }

  function begin(stranger: Stranger, socket: Socket, response: ServerResponse): void {
    clearTimeout(stranger.idle)
    stranger.requests++
    stranger.current = response
    socket.pause()
    response.once('close', () => {
      stranger.current = undefined
      if (strangers.get(socket) !== stranger) return
      // Other connections get their turn first.
      setImmediate(() => next(stranger, socket))
    })
  }

  function next(stranger: Stranger, socket: Socket): void {
    if (stranger.isEnding || strangers.get(socket) !== stranger) return
    const following = stranger.waiting.shift()
    if (following) {
      begin(stranger, socket, following.response)
      following.resolve(true)
      return
    }
    socket.resume()
    const { bytesRead } = socket
    // If a part of a request has arrived, its own time limit holds.
    const closeIfIdle = () => void (socket.bytesRead === bytesRead && socket.destroy())
    stranger.idle = setTimeout(closeIfIdle, strangerKeepAliveMs)
  }

  return {
    listen(server, answerDirectly = () => false) {
      const handlers = server.listeners('request') as RequestListener[]
      server.removeAllListeners('request')
      server.on('connection', admit).on('request', (request, response) => {
        if (!strangers.has(request.socket) && answerDirectly(request, response)) return
        handleOrHold(request, () => {
          for (const handle of handlers) handle.call(server, request, response)
        })
      })
    },

    turn({ socket }, response) {
      const stranger = strangers.get(socket)
      if (stranger === undefined) return true
      if (stranger.isEnding) return Promise.resolve(false)
      if (stranger.current === undefined && stranger.waiting.length === 0) {
        begin(stranger, socket, response)
        return true
      }
      return new Promise(resolve => stranger.waiting.push({ response, resolve }))
    },

    recognise({ socket }) {
      const stranger = strangers.get(socket)
      if (stranger === undefined) return
      strangers.delete(socket)
      clearTimeout(stranger.idle)
      addresses.get(stranger.bucket)?.strangers.delete(socket)
      socket.resume()
      for (const { resolve } of stranger.waiting.splice(0)) resolve(true)
      for (const handle of stranger.held.splice(0)) handle()
    },

    headersOf(response, endsIt) {
      const socket = response.req.socket
      const stranger = strangers.get(socket)
      if (stranger === undefined || !response.shouldKeepAlive) return {}
      if (endsIt || stranger.requests >= strangerRequestsMax) {
        drop(stranger)
        return { connection: 'close' }
      }
      return {
        connection: 'keep-alive',
        // A second less, so that a client does not send a request on a connection that is being closed.
        'keep-alive': `timeout=${Math.max(0, Math.floor(strangerKeepAliveMs / 1000) - 1)}`,
      }
    },
  }
}
