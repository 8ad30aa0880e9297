/**
 * The thread of the data teams' ports (door.ts). It reads nothing of what it passes on: ClickHouse signs people in, and ends who
 * says nothing. A large result takes no time from the program's own thread.
 *
 * The bound is one for all clients of a port, not one for each address: every client comes from the loopback.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import type { SqlDoor } from './door.ts'

// For each port. Analysts together may run 50 queries, and tools keep more connections than they use. ClickHouse has 4,096.
const connectionsMax = 128
// ClickHouse has ended the connection, and the client does not read the rest.
const unreadMsMax = 30_000
const host = '127.0.0.1'

const { wanted, behind } = workerData as Record<'wanted' | 'behind', SqlDoor>
const httpPort = await listen(wanted.httpPort, behind.httpPort)
const nativePort = await listen(wanted.nativePort, behind.nativePort)
parentPort?.postMessage({ httpPort, nativePort } satisfies SqlDoor)

/** Returns the port. A connection above the bound is closed at once. */
async function listen(port: number, portBehind: number): Promise<number> {
  // A client may end its side and still wait for an answer.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, client => pass(client, portBehind))
  server.maxConnections = connectionsMax
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** Node cannot reset a connection whose own side has ended: it would keep the socket for ever. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/** Passes bytes both ways until ClickHouse ends the connection, or until the client is gone. A reset stays a reset. */
function pass(client: Socket, port: number): void {
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
}
