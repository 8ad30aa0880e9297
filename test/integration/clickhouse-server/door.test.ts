/** Proves that the data teams' ports pass on every byte as if ClickHouse itself listened there. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { openDoor } from '../../../services/clickhouse-server/door.ts'

const host = '127.0.0.1'

describe('a connection through the door', () => {
  test.each([
    ['ends', (socket: Socket) => socket.end('last words'), 'last words'],
    ['is reset', (socket: Socket) => socket.resetAndDestroy(), 'ECONNRESET'],
  ])('%s for the client as the server ends it', async (_, leave, expected) => {
    const server = await listening(leave)
    const door = await openDoor({ httpPort: 0, nativePort: 0 }, both(server))
    const client = connect(door.nativePort, host)
    const seen = await buffer(client).then(String, error => (error as NodeJS.ErrnoException).code)
    expect(seen).toBe(expected)
    await door.close()
    server.close()
  })

  test.each([
    ['ends', (socket: Socket) => socket.destroy(), 'end'],
    ['is reset', (socket: Socket) => socket.resetAndDestroy(), 'ECONNRESET'],
  ])('%s for the server as the client ends it', async (_, leave, expected) => {
    const ended = Promise.withResolvers<string | undefined>()
    const server = await listening(socket => {
      socket.write('hello')
      socket.on('end', () => ended.resolve('end'))
      socket.on('error', (error: NodeJS.ErrnoException) => ended.resolve(error.code))
      socket.resume()
    })
    const door = await openDoor({ httpPort: 0, nativePort: 0 }, both(server))
    const client = connect(door.nativePort, host)
    await once(client, 'data')
    leave(client)
    expect(await ended.promise).toBe(expected)
    await door.close()
    server.close()
  })

  test.each(['httpPort', 'nativePort'] as const)(
    'is none if its %s is taken, and the error names the port',
    async name => {
      const server = await listening(socket => socket.destroy())
      const { [name]: port } = both(server)
      const opening = openDoor({ httpPort: 0, nativePort: 0, [name]: port }, both(server))
      await expect(opening).rejects.toMatchObject({
        name: 'ServerStartError',
        message: `port ${port} is taken`,
      })
      server.close()
    },
  )
})

async function listening(onConnection: (socket: Socket) => unknown): Promise<Server> {
  const server = createServer(onConnection).listen(0, host)
  await once(server, 'listening')
  return server
}

function both(server: Server): { httpPort: number; nativePort: number } {
  const { port } = server.address() as { port: number }
  return { httpPort: port, nativePort: port }
}
