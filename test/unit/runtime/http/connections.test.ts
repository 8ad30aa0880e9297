/** What a port without credentials does, as the portal's and the ops port: everyone is a stranger. */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createConnections } from '../../../../services/runtime/http/connections.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void

let server: Server

beforeEach(async () => {
  server = createServer(({ url }, response) => url === '/held' || response.end('answered'))
  createConnections({ perAddressMax: 10, isTrustedProxy: () => false }).listen(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

async function open(localAddress = '127.0.0.1'): Promise<Socket> {
  const { port } = server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  await once(socket, 'connect')
  return socket
}

test.each([
  ['nothing yet', ''],
  ['a request', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
])(
  'idle connections of an address that sent %s keep nobody out: the one that is idle for longest ends',
  async (_, said) => {
    const held = await open()
    held.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(server, 'request')
    const idle: Socket[] = []
    for (let n = 0; n < 9; n++) {
      const socket = await open()
      idle.push(socket)
      if (said === '') continue
      socket.write(said)
      await once(socket, 'data')
    }
    const ended = once(idle[0]?.resume() as Socket, 'close')
    const another = await open()
    another.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(String((await once(another, 'data'))[0])).toContain('answered')
    await ended
    expect([held, ...idle.slice(1)].map(({ readyState }) => readyState)).toEqual(Array(9).fill('open'))
  },
)

test('idle connections of some addresses keep no other address out: the one that is idle for longest ends', async () => {
  server.maxConnections = 4
  const held = await open()
  held.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(server, 'request')
  const sockets: Socket[] = []
  for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.1', '127.0.0.3']) {
    const socket = await open(address)
    sockets.push(socket)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const [data] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    expect(String(data)).toContain('answered')
    socket.resume()
  }
  await expect.poll(() => sockets.map(({ closed }) => closed)).toEqual([true, true, true, false, false])
  expect(held.closed).toBe(false)
})

test('a server whose places were all taken by slow requests has room again once one of them is answered', async () => {
  server.maxConnections = 4
  server.keepAliveTimeout = 0
  const held: ServerResponse[] = []
  server.on('request', ({ url }, response) => url === '/held' && held.push(response))
  for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.2']) {
    const socket = await open(address)
    socket.resume().write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(server, 'request')
  }
  for (const response of held) response.end('answered')
  await expect
    .poll(async () => {
      const socket = await open('127.0.0.3')
      socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      return text(socket).catch(() => 'refused')
    })
    .toContain('answered')
})

test('CONNECT ends the connection, so it holds no place', async () => {
  const socket = await open()
  const ended = once(socket.resume(), 'close')
  socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')
  await ended
  const left = await new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
  expect(left).toBe(0)
})

test('a connection that is reset after CONNECT ends nothing else', async () => {
  const answeredElsewhere = new Promise<void>(resolve => {
    server.on('connect', (_, socket) => socket.on('close', () => resolve()))
  })
  const socket = await open()
  socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', () => socket.resetAndDestroy())
  await answeredElsewhere
  const other = await open()
  other.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  expect(await text(other)).toContain('answered')
})

test('a body of many chunks ends its connection, and a short one is read', async () => {
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
  const short = await open()
  short.write(`${head}${'1\r\na\r\n'.repeat(1_000)}0\r\n\r\n`)
  expect(await text(short)).toContain('answered')

  const long = await open()
  const ended = new Promise(resolve => long.resume().on('error', resolve).on('close', resolve))
  long.write(`${head}${'1\r\na\r\n'.repeat(50_000)}`)
  await ended
})

test('what is sent ahead is not handled: the answer to the first request ends the connection', async () => {
  let built = 0
  server.on('request', () => built++)
  const socket = await open()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000))
  expect((await text(socket)).match(/answered/g)).toHaveLength(1)
  expect(built).toBe(1)
})

test('the connections of one address share one turn, so ten of them get no more than one', async () => {
  const [connections, rounds, leastMs] = [10, 20, 1]
  const sockets = await Promise.all(Array.from({ length: connections }, () => open()))
  const began = performance.now()
  const asked = sockets.map(async socket => {
    for (let round = 0; round < rounds; round++) {
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      expect(String((await once(socket, 'data'))[0])).toContain('answered')
    }
  })
  await Promise.all(asked)
  expect(performance.now() - began).toBeGreaterThan(connections * rounds * leastMs)
})

test('a connection that follows a closed one waits for its turn, too', async () => {
  // Turns end only by these timers.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  const first = await open()
  first.write(request)
  expect(await text(first)).toContain('answered')
  await expect.poll(() => promisify(server.getConnections).call(server)).toBe(0)
  const second = await open()
  let answer = ''
  second.on('data', data => {
    answer += data
  })
  second.write(request)
  const elsewhere = connect({ port: second.remotePort ?? 0, host: '127.0.0.1', localAddress: '127.0.0.2' })
  elsewhere.write(request)
  expect(await text(elsewhere)).toContain('answered')
  expect(answer).toBe('')
  const ended = once(second, 'close')
  vi.advanceTimersByTime(10)
  await ended
  expect(answer).toContain('answered')
})

test('a closed connection does not hold its answer: under a flood, quick collections would copy all of them', async () => {
  const [rounds, answerBytes] = [100, 80_000]
  server.on('request', (_, response) => Object.assign(response, { held: Array(answerBytes / 8).fill(0.5) }))
  async function ask(): Promise<void> {
    const socket = await open()
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await once(socket.resume(), 'close')
  }
  await ask()
  collect()
  for (let round = 0; round < rounds; round++) await ask()
  collect({ type: 'minor' })
  collect({ type: 'minor' })
  const quick = process.memoryUsage().heapUsed
  collect()
  expect((quick - process.memoryUsage().heapUsed) / rounds).toBeLessThan(answerBytes / 2)
})

test.each([
  ['requests sent ahead', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2_000), ''],
  ['what is no request', 'x'.repeat(60_000), ''],
  ['what follows such', 'x\r\n\r\n', 'x'.repeat(60_000)],
  ['what follows a CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 'x'.repeat(60_000)],
])('%s is freed at once: a flood would make V8 collect again and again', async (_, first, rest) => {
  const end = (_: unknown, socket: Duplex) => {
    socket.end('HTTP/1.1 400 No\r\n\r\n')
    socket.resume()
  }
  server.on('connect', end).on('clientError', end)
  const [firstBytes, restBytes] = [Buffer.from(first), Buffer.from(rest)]
  const connections = 200
  collect()
  const before = process.memoryUsage().arrayBuffers
  for (let round = 0; round < connections; round++) {
    const socket = (await open()).on('error', () => {})
    socket.once('data', () => socket.end(restBytes)).write(firstBytes)
    await once(socket, 'close')
  }
  expect((process.memoryUsage().arrayBuffers - before) / connections).toBeLessThan(5_000)
})
