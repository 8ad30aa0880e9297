/** How connections are closed, and how they are limited in time and number. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { QueryAppOptions } from '../../../../services/query/options.ts'
import { startTestApp, type TestApp } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import { connectRaw, type RawConnection, rawRequest, sendRaw } from '../../../support/query/raw-http.ts'
import { expectContract } from '../../../support/query/raw-http-contract.ts'
import { expectEveryPromise } from '../../../support/query/shape.ts'

const preflight = 'OPTIONS /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n'

const statsRequest = (app: TestApp) => rawRequest('GET /api/v1/stats', app.issue())

describe('a request in progress', () => {
  let held: PromiseWithResolvers<void>
  let isAsked = false
  let app: TestApp
  beforeEach(async () => {
    isAsked = false
    held = Promise.withResolvers()
    const { tables } = fakeTables()
    app = await startTestApp({
      tables: {
        rows: async statement => {
          isAsked = true
          await held.promise
          return tables.rows(statement)
        },
      },
    })
  })
  afterEach(() => app.close())

  it('is answered when the app closes, and its connection is closed', async () => {
    const responses = sendRaw(app.port, statsRequest(app))
    await expect.poll(() => isAsked).toBe(true)
    const closed = app.close()
    held.resolve()
    const [response] = await responses
    await closed
    if (response === undefined) throw new Error('no response')
    expect(response.status).toBe(200)
    expectEveryPromise(response)
  })

  it.each([
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['no request', 'nonsense\r\n\r\n'],
    ['another request', preflight],
  ])('does no harm if its client resets the connection while %s waits to be answered', async (_, waiting) => {
    const socket = connect(app.port, '127.0.0.1')
    socket.write(statsRequest(app) + waiting)
    await expect.poll(() => isAsked).toBe(true)
    socket.resetAndDestroy()
    const other = sendRaw(app.port, statsRequest(app))
    held.resolve()
    expect((await other).map(({ status }) => status)).toEqual([200])
  })
})

/** An app with these limits, and production limits for the rest, and a connection to it. */
async function connectTo(options: Partial<QueryAppOptions>) {
  const app = await startTestApp({ tables: fakeTables().tables, keyLimit: 100_000, options })
  onTestFinished(() => app.close())
  const connection = await connectRaw(app.port)
  onTestFinished(() => connection.close())
  return { app, connection }
}

/** Sends single bytes until the test is over. */
function drip(connection: RawConnection): void {
  const timer = setInterval(() => connection.send('x'), 20)
  onTestFinished(() => clearInterval(timer))
}

describe('a connection on which a request does not arrive in time', () => {
  const line = 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n'

  it.each([
    ['nothing comes', ''],
    ['the headers stop', line],
    ['the headers come so slowly that they never end', `${line}X-Slow: `],
  ])('gets 408 and is closed if %s', async (name, bytes) => {
    const { connection } = await connectTo({ headersTimeoutMs: 150, requestTimeoutMs: 60_000 })
    connection.send(bytes)
    if (name.includes('slowly')) drip(connection)
    const response = await connection.next()
    if (response === undefined) throw new Error('no response')
    expectContract(response, '408 request_timeout')
    expect(response.headers.connection).toBe('close')
    expect(await connection.next()).toBeUndefined()
  })

  it.each([
    ['GET', 'never ends', 200],
    ['POST', 'stops', 405],
  ])('is answered once to %s, and closed, if the body %s', async (method, how, status) => {
    const { app, connection } = await connectTo({ headersTimeoutMs: 1_500, requestTimeoutMs: 2_000 })
    const request = statsRequest(app).replace('GET', method)
    connection.send(request.replace('Host: x', 'Host: x\r\nContent-Length: 100000'))
    if (how === 'never ends') drip(connection)
    expect((await connection.next())?.status).toBe(status)
    expect(await connection.next()).toBeUndefined()
  })

  it('gets 408 and is closed if half a request comes after a whole one', async () => {
    const { app, connection } = await connectTo({ headersTimeoutMs: 1_500, requestTimeoutMs: 60_000 })
    connection.send(`${statsRequest(app)}GET /api`)
    expect((await connection.next())?.status).toBe(200)
    expect((await connection.next())?.status).toBe(408)
    expect(await connection.next()).toBeUndefined()
  })
})

describe('a connection on which nothing moves', () => {
  it('is closed without a further response after its last one', async () => {
    const { app, connection } = await connectTo({ keepAliveTimeoutMs: 100 })
    connection.send(statsRequest(app))
    expect((await connection.next())?.status).toBe(200)
    expect(await connection.next()).toBeUndefined()
  })

  it('gets an error before it is closed, however long the statements of its request take', async () => {
    // A tenth of the time is for the error. On a busy machine 200 ms are not enough for it.
    const app = await startTestApp({
      tables: { rows: () => new Promise(() => undefined) },
      options: { socketTimeoutMs: 20_000, PLEDGEVIEW_QUERY_MS_MAX: 60_000 },
    })
    onTestFinished(() => app.close())
    const requests = ['/projects', '/projects/slug', '/stats'].flatMap(path => {
      const credentials = app.issue()
      // The second one joins the load of the first one.
      return [app.get(path, credentials), app.get(path, credentials)]
    })
    for (const response of await Promise.all(requests)) {
      expect(response.status).toBe(500)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    }
  })

  it('is closed if its responses are not read', async () => {
    const { app, connection } = await connectTo({ socketTimeoutMs: 500 })
    connection.close()
    const greedy = connect(app.port, '127.0.0.1').pause()
    await once(greedy, 'connect')
    // The connection is cut while it still writes.
    greedy.on('error', () => {})
    // More responses than the buffers of both sides hold.
    greedy.write(statsRequest(app).repeat(30_000))
    await expect.poll(() => app.connections()).toBe(0)
    greedy.destroy()
  })
})

it('connections beyond the limit are closed on arrival, while those within it are served, until there is room', async () => {
  const app = await startTestApp({ tables: fakeTables().tables, options: { PLEDGEVIEW_CONNECTIONS_MAX: 2 } })
  onTestFinished(() => app.close())
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
  await expect.poll(() => sendRaw(app.port, preflight)).toHaveLength(1)
  first.close()
})
