/** What a port without credentials does, as the portal's and the ops port: everyone is a stranger. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createConnections } from '../../../../services/runtime/http/connections.ts'

let server: Server

beforeEach(async () => {
  server = createServer((_, response) => response.end('answered'))
  createConnections({ perAddressMax: 10, isTrustedProxy: () => false }).listen(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

async function open(): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

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

test.each(['100-continue', 'something'])(
  '`Expect: %s` is answered as any request, and ends its connection',
  async value => {
    const socket = await open()
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nExpect: ${value}\r\n\r\n`)
    const answer = await text(socket)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain('answered')
  },
)

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

test('the connections of one address share one turn of the event loop', async () => {
  let isOver = false
  let inTurn = 0
  let most = 0
  server.on('request', () => {
    most = Math.max(most, ++inTurn)
  })
  const countTurns = () => {
    inTurn = 0
    if (!isOver) setImmediate(countTurns)
  }
  countTurns()
  const sockets = await Promise.all(Array.from({ length: 10 }, open))
  const rounds = sockets.map(async socket => {
    for (let asked = 0; asked < 50; asked++) {
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      expect(String((await once(socket, 'data'))[0])).toContain('answered')
    }
  })
  await Promise.all(rounds)
  isOver = true
  expect(most).toBe(1)
})
