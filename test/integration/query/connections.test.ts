/** What happens to connections: closed with care, bounded in time and number. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { QueryAppOptions } from '../../../services/query/options.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../support/query-app.ts'
import { fakeTables } from '../../support/query-fake-tables.ts'
import { expectEveryPromise } from '../../support/query-shape.ts'
import { connectRaw, exchangeRaw, type RawConnection } from '../../support/raw-http.ts'
import { expectContract } from '../../support/raw-http-contract.ts'

const preflight = 'OPTIONS /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'

function statsRequest(app: TestApp): string {
  const headers = Object.entries(keyHeaders(app.issue())).map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n${headers.join('')}\r\n`
}

describe('a request in progress', () => {
  let release = () => {}
  let isAsked = false
  let app: TestApp
  beforeEach(async () => {
    isAsked = false
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    const { tables } = fakeTables()
    app = await startTestApp({
      tables: {
        rows: async statement => {
          isAsked = true
          await held
          return tables.rows(statement)
        },
      },
    })
  })
  afterEach(() => app.close())

  it('is answered as always when the app closes, and its connection is closed', async () => {
    const exchange = exchangeRaw(app.port, statsRequest(app))
    await expect.poll(() => isAsked).toBe(true)
    const closed = app.close()
    release()
    const [response] = await exchange
    await closed
    if (response === undefined) throw new Error('no answer')
    expect(response.status).toBe(200)
    expectEveryPromise(response)
  })

  it.each([
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no request', 'nonsense\r\n\r\n'],
    ['another request', preflight],
  ])('whose client resets its connection, with %s waiting for its turn, harms nobody', async (_, waiting) => {
    const socket = connect(app.port, '127.0.0.1')
    socket.write(statsRequest(app) + waiting)
    await expect.poll(() => isAsked).toBe(true)
    socket.resetAndDestroy()
    const other = exchangeRaw(app.port, statsRequest(app))
    release()
    expect((await other).map(({ status }) => status)).toEqual([200])
  })
})

/** An app whose bounds are the given ones and else those of production, and a connection to it. */
async function connectTo(options: Partial<QueryAppOptions>) {
  const app = await startTestApp({ tables: fakeTables().tables, keyLimit: 100_000, options })
  onTestFinished(() => app.close())
  const connection = await connectRaw(app.port)
  onTestFinished(() => connection.close())
  return { app, connection }
}

/** Sends a byte now and then until the test is over. */
function drip(connection: RawConnection): void {
  const timer = setInterval(() => connection.send('x'), 20)
  onTestFinished(() => clearInterval(timer))
}

describe('a connection on which a request does not arrive in time', () => {
  const line = 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n'

  it.each([
    ['nothing comes', ''],
    ['half a line comes', 'GET /api'],
    ['the headers stop', line],
    ['the headers come so slowly that they never end', `${line}X-Slow: `],
    ['half a request comes after a whole one', `${preflight}GET /api`],
  ])('gets a 408 and is closed where %s', async (name, bytes) => {
    const { connection } = await connectTo({ headersTimeoutMs: 150, requestTimeoutMs: 60_000 })
    connection.send(bytes)
    if (name.includes('slowly')) drip(connection)
    if (bytes.startsWith(preflight)) expect((await connection.next())?.status).toBe(204)
    const response = await connection.next()
    if (response === undefined) throw new Error('no answer')
    expectContract(response, '408 request_timeout')
    expect(response.headers.connection).toBe('close')
    expect(await connection.next()).toBeUndefined()
  })

  it.each([
    ['GET', 'stops', 200],
    ['GET', 'never ends', 200],
    ['POST', 'stops', 405],
    ['POST', 'never ends', 405],
  ])('is answered to %s once, and closed, where the body %s', async (method, how, status) => {
    const { app, connection } = await connectTo({ headersTimeoutMs: 150, requestTimeoutMs: 300 })
    const request = statsRequest(app).replace('GET', method)
    connection.send(request.replace('Host: x', 'Host: x\r\nContent-Length: 100000'))
    if (how === 'never ends') drip(connection)
    expect((await connection.next())?.status).toBe(status)
    expect(await connection.next()).toBeUndefined()
  })
})

describe('a connection on which nothing moves', () => {
  it('is closed without a word after its last answer', async () => {
    const { connection } = await connectTo({ keepAliveTimeoutMs: 100 })
    connection.send(preflight)
    expect((await connection.next())?.status).toBe(204)
    expect(await connection.next()).toBeUndefined()
  })

  it('is closed when its answers are not read', async () => {
    const { app, connection } = await connectTo({ socketTimeoutMs: 500 })
    connection.close()
    const greedy = connect(app.port, '127.0.0.1').pause()
    await once(greedy, 'connect')
    // Cut while it still writes.
    greedy.on('error', () => {})
    // More answers than the buffers of both sides hold.
    greedy.write(statsRequest(app).repeat(30_000))
    await expect.poll(() => app.connections()).toBe(0)
    greedy.destroy()
  })
})

describe('connections beyond the bound', () => {
  let app: TestApp
  beforeEach(async () => {
    app = await startTestApp({ tables: fakeTables().tables, options: { connectionsMax: 2 } })
  })
  afterEach(() => app.close())

  it('are closed on arrival, while those below it are served, until there is room again', async () => {
    const first = await connectRaw(app.port)
    const second = await connectRaw(app.port)
    for (const connection of [first, second]) {
      connection.send(preflight)
      expect((await connection.next())?.status).toBe(204)
    }
    const third = await connectRaw(app.port)
    third.send(preflight)
    expect(await third.next()).toBeUndefined()
    first.send(preflight)
    expect((await first.next())?.status).toBe(204)
    second.close()
    await expect.poll(() => exchangeRaw(app.port, preflight)).toHaveLength(1)
    first.close()
  })
})
