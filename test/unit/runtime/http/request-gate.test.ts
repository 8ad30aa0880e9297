/** The gate in front of the HTTP parser: what is sent ahead stays bytes, and the server sees the same requests. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { afterEach, describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { createConnections } from '../../../../services/runtime/http/connections.ts'
import { createSharedTurn, gateRequests } from '../../../../services/runtime/http/request-gate.ts'
import { connectRaw } from '../../../support/query/raw-http.ts'

let server: Server

/** A server with gates. `sockets` are its connections, in order. */
async function start(handle: RequestListener): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = []
  server = createServer({ requireHostHeader: false }, handle)
  server.on('connection', socket => sockets.push(socket))
  const strangers = { perAddressMax: 1000, max: 1000, keepAliveMs: 60_000 }
  createConnections({ perAddressMax: 1000, isTrustedProxy: () => false, strangers }).listen(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, sockets }
}

const bodies = fc.oneof(
  fc.constant(''),
  fc.constantFrom(
    'x',
    '\r\n',
    '\r\n\r\n',
    '\r\n\r\n\r\n',
    'GET /body HTTP/1.1\r\n\r\n',
    `${'x'.repeat(3_000)}\r\n`,
  ),
)
const requests = fc.array(fc.record({ body: bodies, isChunked: fc.boolean(), isPadded: fc.boolean() }), {
  minLength: 1,
  maxLength: 12,
})

function bytesOf(
  { body, isChunked, isPadded }: { body: string; isChunked: boolean; isPadded: boolean },
  at: number,
) {
  const start = `${isPadded ? '\r\n' : ''}POST /${at} HTTP/1.1\r\n`
  if (!isChunked) return `${start}Content-Length: ${body.length}\r\n\r\n${body}`
  const chunk = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
  return `${start}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`
}

describe('a server with gates', () => {
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  it('sees every request and its body in order, however the bytes are cut, and at most two at once', async () => {
    let running = 0
    let most = 0
    let seen: { url: string | undefined; body: string }[] = []
    const { port } = await start(async (request, response) => {
      most = Math.max(most, ++running)
      response.on('close', () => running--)
      const one = { url: request.url, body: '' }
      seen.push(one)
      for await (const chunk of request) one.body += chunk
      response.end(request.url)
    })
    await fc.assert(
      fc.asyncProperty(
        requests,
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }),
        async (all, cuts) => {
          seen = []
          const connection = await connectRaw(port)
          let rest = all.map(bytesOf).join('')
          for (const cut of cuts) {
            connection.send(rest.slice(0, cut))
            rest = rest.slice(cut)
            // Otherwise the system joins the pieces again.
            await new Promise(resolve => setImmediate(resolve))
          }
          if (rest !== '') connection.send(rest)
          for (const at of all.keys()) expect((await connection.next())?.body).toBe(`/${at}`)
          connection.close()
          expect(seen).toEqual(all.map(({ body }, at) => ({ url: `/${at}`, body })))
        },
      ),
      { numRuns: 100 },
    )
    expect(most).toBeLessThanOrEqual(2)
  })

  it('reads at most 16 KiB and one more read of a connection whose first request has no answer yet', async () => {
    const { port, sockets } = await start((request, response) => {
      if (request.url === '/other') response.end()
    })
    const greedy = connect(port, '127.0.0.1')
    onTestFinished(() => void greedy.destroy())
    greedy.on('error', () => {})
    greedy.write('GET / HTTP/1.1\r\n\r\n'.repeat(1_000_000))
    await expect.poll(() => sockets[0]?.bytesRead ?? 0).toBeGreaterThan(16 * 1024)
    // With these exchanges the server has turns in which it could read more.
    const other = await connectRaw(port)
    for (let asked = 0; asked < 3; asked++) {
      other.send('GET /other HTTP/1.1\r\n\r\n')
      expect((await other.next())?.status).toBe(200)
    }
    expect(sockets[0]?.bytesRead).toBeLessThanOrEqual((16 + 64) * 1024)
  })

  it('takes no turn for each of many empty lines', async () => {
    let pauses = 0
    const { port } = await start((_, response) => void response.end())
    server.on('connection', socket => socket.on('pause', () => pauses++))
    const connection = await connectRaw(port)
    connection.send(`${'\r\n'.repeat(50_000)}GET / HTTP/1.1\r\n\r\n`)
    expect((await connection.next())?.status).toBe(200)
    expect(pauses).toBeLessThan(10)
  })
})

test('the turn that strangers share lasts two milliseconds, and a connection that has left the line gets none', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const turn = createSharedTurn()
  const served: string[] = []
  expect(turn.take()).toBe(true)
  expect(turn.take()).toBe(false)
  const leave = turn.wait(() => served.push('gone'))
  for (const name of ['first', 'second']) turn.wait(() => served.push(name))
  leave()
  vi.advanceTimersByTime(1)
  expect(served).toEqual([])
  vi.advanceTimersByTime(1)
  expect(served).toEqual(['first'])
  vi.advanceTimersByTime(2)
  expect(served).toEqual(['first', 'second'])
})

test('a connection that waits for its turn is not read, and has no parser', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const turn = createSharedTurn()
  expect(turn.take()).toBe(true)
  const socket = new PassThrough()
  socket.pause()
  // A real socket has a buffer of its own for each read, too.
  socket.write(Buffer.alloc(100))
  let parsers = 0
  const serve = () => {
    parsers++
    socket.on('data', () => {})
  }
  gateRequests(socket as unknown as Socket, serve, () => turn).open()
  vi.advanceTimersByTime(1)
  expect([parsers, socket.readableFlowing]).toEqual([0, false])
  vi.advanceTimersByTime(1)
  expect([parsers, socket.readableFlowing]).toEqual([1, true])
})
