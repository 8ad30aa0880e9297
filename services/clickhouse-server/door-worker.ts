/**
 * The thread of the data teams' ports (door.ts). It changes nothing of what it passes on: ClickHouse signs people in, and ends who
 * says nothing. A large result takes no time from the program's own thread.
 *
 * The bound is one for all clients of a port, not one for each address: every client comes from the loopback. At the bound, a new
 * connection takes the place of the one that has been idle for longest. So a client that only holds connections shuts nobody out, and a
 * query that runs keeps its place:
 * - Over HTTP, a connection is idle until the head of a request is whole, and again from the last byte that ClickHouse sent.
 * - In the native protocol, it is idle until ClickHouse has answered its hello and the client asks something, and again from the last
 *   byte that ClickHouse sent. A query that runs has sent its progress a moment ago.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { createHeadFinder } from '../runtime/http/request-gate.ts'
import type { SqlDoor } from './door.ts'

// For each port. Analysts together may run 50 queries, and tools keep more connections than they use. ClickHouse has 4,096.
const connectionsMax = 128
// Each new connection is one of ClickHouse's, too. This bounds how many of them a flood makes. It is ten times the pause between two
// messages of progress.
const idleMsMin = 1_000
// ClickHouse has ended the connection, and the client does not read the rest.
const unreadMsMax = 30_000
const host = '127.0.0.1'
// ClickHouse asks for the body of a request. It is not the answer.
const goOn = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

const { wanted, behind } = workerData as Record<'wanted' | 'behind', SqlDoor>
const httpPort = await listen(wanted.httpPort, behind.httpPort, markIdleHttp)
const nativePort = await listen(wanted.nativePort, behind.nativePort, markIdleNative)
parentPort?.postMessage({ httpPort, nativePort } satisfies SqlDoor)

/** Calls back whenever the connection becomes idle (`true`) or busy. A new one is idle. */
type MarkIdle = (client: Socket, server: Socket, mark: (isIdle: boolean) => void) => void

/** Returns the port. */
async function listen(port: number, portBehind: number, markIdle: MarkIdle): Promise<number> {
  const open = new Set<Socket>()
  /** Since when, the longest first. */
  const idle = new Map<Socket, number>()

  function leave(client: Socket): void {
    open.delete(client)
    idle.delete(client)
  }

  /** Whether there is a place now. */
  function makePlace(): boolean {
    if (open.size < connectionsMax) return true
    const [oldest] = idle
    if (!oldest || performance.now() - oldest[1] < idleMsMin) return false
    leave(oldest[0])
    oldest[0].destroy()
    return true
  }

  // A client may end its side and still wait for an answer.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, client => {
    if (!makePlace()) {
      client.destroy()
      return
    }
    open.add(client)
    idle.set(client, performance.now())
    client.on('close', () => leave(client))
    markIdle(client, pass(client, portBehind), isIdle => {
      idle.delete(client)
      if (isIdle && open.has(client)) idle.set(client, performance.now())
    })
  })
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function markIdleHttp(client: Socket, server: Socket, mark: (isIdle: boolean) => void): void {
  const endOfHead = createHeadFinder()
  let isAsking = false
  client.on('data', (chunk: Buffer) => {
    if (isAsking || endOfHead(chunk) < 0) return
    isAsking = true
    mark(false)
  })
  server.on('data', (chunk: Buffer) => {
    if (chunk.equals(goOn)) return
    isAsking = false
    mark(true)
  })
}

function markIdleNative(client: Socket, server: Socket, mark: (isIdle: boolean) => void): void {
  server.once('data', () => client.on('data', () => mark(false)))
  server.on('data', () => mark(true))
}

/** Node cannot reset a connection whose own side has ended: it would keep the socket for ever. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/** Passes bytes both ways until ClickHouse ends the connection, or until the client is gone. A reset stays a reset. */
function pass(client: Socket, port: number): Socket {
  const server = connect({ port, host, noDelay: true })
  client.pipe(server)
  server.pipe(client, { end: false })
  client.on('error', () => reset(server))
  client.on('close', () => server.destroy())
  // `close` follows.
  server.on('error', () => {})
  server.on('close', () => {
    if (!server.readableEnded) return reset(client)
    client.setTimeout(unreadMsMax, () => client.destroy())
    return client.destroySoon()
  })
  return server
}
