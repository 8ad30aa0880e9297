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

  // That the HTTP port is named is in start.test.ts.
  test('is none if the native port is taken, and the error names it', async () => {
    const server = await listening(socket => socket.destroy())
    const { nativePort } = both(server)
    const opening = openDoor({ httpPort: 0, nativePort }, both(server))
    await expect(opening).rejects.toMatchObject({ code: 'EADDRINUSE', port: nativePort })
    server.close()
  })
})

describe('when all places are taken, a new connection', () => {
  const places = 128
  const head = 'POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n'

  /** Answers `ping` and `hello` only, and asks for the body of a request. */
  async function opened() {
    const server = await listening(socket => {
      socket.on('error', () => {})
      socket.on('data', data => {
        if (/ping|hello/.test(String(data))) socket.write('answer')
        if (/Expect/.test(String(data))) socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      })
    })
    return { server, door: await openDoor({ httpPort: 0, nativePort: 0 }, both(server)) }
  }

  async function open(port: number, text: string): Promise<Socket> {
    const client = connect(port, host).on('error', () => {})
    await once(client, 'connect')
    client.write(text)
    return client
  }

  /** Whether a new client is answered. */
  async function isAnswered(port: number, text: string): Promise<boolean> {
    const client = await open(port, text)
    const [found] = await Promise.race([once(client, 'data'), once(client, 'close')])
    client.destroy()
    return String(found) === 'answer'
  }

  test.each([
    ['sent nothing', 'http', '', 'GET /ping HTTP/1.1\r\n\r\n'],
    ['sent half a head', 'http', '\r\n\r\nGET / HTTP/1.1\r\n', 'GET /ping HTTP/1.1\r\n\r\n'],
    ['had its answer', 'http', 'GET /ping HTTP/1.1\r\n\r\n', 'GET /ping HTTP/1.1\r\n\r\n'],
    ['sent nothing', 'native', '', 'hello'],
    ['sent half a hello', 'native', 'hel', 'hello'],
    ['had its answers', 'native', 'hello', 'hello'],
  ])('takes the place of one that %s over %s, and of none with a query', async (_, kind, held, asked) => {
    const { server, door } = await opened()
    const port = kind === 'http' ? Number(new URL(door.url).port) : door.nativePort
    const query = await open(port, kind === 'http' ? head : 'hello')
    let isQueryEnded = false
    query.once('close', () => {
      isQueryEnded = true
    })
    await once(query, 'data')
    query.write('SELECT 1;')
    const others = await Promise.all(Array.from({ length: 2 * places }, () => open(port, held)))
    // Each asks twice, if it is answered.
    for (const other of others) other.once('data', () => other.write(held))
    for (let round = 0; round < 3; round++)
      await expect.poll(() => isAnswered(port, asked), { timeout: 10_000 }).toBe(true)
    expect(isQueryEnded).toBe(false)
    for (const socket of [query, ...others]) socket.destroy()
    await door.close()
    server.close()
  })
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
