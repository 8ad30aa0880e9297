/**
 * Proves that the ports of the data teams cannot starve the program, which uses the same server, and that they pass on every
 * byte as if ClickHouse itself listened there.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDoor } from '../../../services/clickhouse-server/door.ts'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { askAsAnalyst } from '../../support/analyst.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative } from '../../support/native-protocol.ts'

// ClickHouse has places for 4,096.
const strangers = 4_600
const host = '127.0.0.1'
const answerMsMax = 2_000

describe('the data teams’ ports', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables

  beforeAll(async () => {
    directory = makeTestDirectory()
    opened = await directory.open()
  })

  afterAll(async () => {
    await opened.close()
    directory.remove()
  })

  test.each([
    ['the HTTP port', httpPort],
    ['the native port', nativePort],
  ])(
    'silent connections of strangers to %s leave the program its places, and analysts get in again',
    async (_, portOf) => {
      const silent: Socket[] = []
      for (let begun = 0; begun < strangers; begun += 100) {
        const some = Array.from({ length: 100 }, () =>
          connect(portOf(), host)
            .on('error', () => {})
            .resume(),
        )
        silent.push(...some)
        await Promise.all(some.map(socket => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
      }
      for (let time = 0; time < 5; time++) {
        const asked = performance.now()
        expect(await opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
        expect(performance.now() - asked).toBeLessThan(answerMsMax)
      }
      for (const socket of silent) socket.destroy()
      await expect.poll(() => askHttp().catch(String)).toBe('1\n')
      await expect.poll(() => askAnalyst('SELECT 1').catch(String)).toEqual(['1'])
    },
  )

  test('a client that does not read its answer holds ClickHouse up, and takes no memory here', async () => {
    const bytes = 300_000_000
    const query = `SELECT repeat('a', 999) FROM numbers(${bytes / 1000})`
    const before = process.memoryUsage.rss()
    const socket = connect({ port: httpPort(), host })
    socket.write(
      `GET /?user=analyst&query=${encodeURIComponent(query)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    await once(socket, 'readable')
    await expect
      .poll(async () => {
        const [row] = await opened.tables.rows<{ n: number }>({
          query: "SELECT toInt32(count()) AS n FROM system.processes WHERE user = 'analyst' AND elapsed > 1",
        })
        return row?.n
      })
      .toBe(1)
    expect(process.memoryUsage.rss() - before).toBeLessThan(bytes / 4)
    let read = 0
    for await (const chunk of socket) read += (chunk as Buffer).length
    expect(read).toBeGreaterThan(bytes)
  })

  test('they stay open when ClickHouse is restarted, and lead to the new process', async () => {
    const pid = opened.clickHouse.pid()
    await opened.clickHouse.kill()
    await expect.poll(() => askHttp().catch(String), { timeout: 60_000 }).toBe('1\n')
    await expect.poll(() => askAnalyst('SELECT 1').catch(String)).toEqual(['1'])
    await expect.poll(() => opened.clickHouse.pid()).not.toBe(pid)
  })

  function httpPort(): number {
    return Number(new URL(opened.door?.url ?? '').port)
  }

  function nativePort(): number {
    return opened.door?.nativePort ?? 0
  }

  async function askHttp(): Promise<string> {
    return (await askAsAnalyst(opened.door?.url ?? '', 'SELECT 1')).text
  }

  function askAnalyst(query: string): Promise<string[]> {
    return askNative({ port: nativePort(), user: 'analyst', password: '' }, query)
  }
})

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
