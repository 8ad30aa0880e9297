/** What happens to connections: closed with care, bounded in time and number. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { keyHeaders, startTestApp, type TestApp } from '../../support/query-app.ts'
import { fakeTables } from '../../support/query-fake-tables.ts'
import { codeIn, expectEveryPromise } from '../../support/query-shape.ts'
import { connectRaw, exchangeRaw, type RawConnection } from '../../support/raw-http.ts'

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

describe('a connection that does not do its part', () => {
  let app: TestApp
  let connection: RawConnection
  beforeEach(async () => {
    app = await startTestApp({
      tables: fakeTables().tables,
      keyLimit: 100_000,
      options: {
        headersTimeoutMs: 150,
        requestTimeoutMs: 300,
        keepAliveTimeoutMs: 100,
        socketTimeoutMs: 1000,
        connectionsMax: 3,
      },
    })
    connection = await connectRaw(app.port)
  })
  afterEach(async () => {
    connection.close()
    await app.close()
  })

  /** Sends a byte now and then until the server ends the connection. */
  function drip(): () => void {
    const timer = setInterval(() => connection.send('x'), 20)
    return () => clearInterval(timer)
  }

  async function expectTimedOut(): Promise<void> {
    const response = await connection.next()
    if (response === undefined) throw new Error('no answer')
    expect([response.status, codeIn(response)]).toEqual([408, 'request_timeout'])
    expectEveryPromise(response)
    expect(response.headers.connection).toBe('close')
    expect(await connection.next()).toBeUndefined()
  }

  it('gets a 408 when it says nothing', async () => {
    await expectTimedOut()
  })

  it('gets a 408 when its headers stop', async () => {
    connection.send('GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n')
    await expectTimedOut()
  })

  it('gets a 408 when its headers come so slowly that they never end', async () => {
    connection.send('GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    const stop = drip()
    await expectTimedOut()
    stop()
  })

  it('gets a 408 when the headers of its second request do not arrive', async () => {
    connection.send(`${preflight}GET /api`)
    expect((await connection.next())?.status).toBe(204)
    await expectTimedOut()
  })

  it.each([
    ['GET', 200],
    ['POST', 405],
  ])(
    'is answered to %s, once, and closed, when the body comes so slowly that it never ends',
    async (method, status) => {
      connection.send(
        statsRequest(app).replace('GET', method).replace('Host: x', 'Host: x\r\nContent-Length: 100000'),
      )
      const stop = drip()
      expect((await connection.next())?.status).toBe(status)
      expect(await connection.next()).toBeUndefined()
      stop()
    },
  )

  it('is closed without a word when nothing follows its last request', async () => {
    connection.send(preflight)
    expect((await connection.next())?.status).toBe(204)
    expect(await connection.next()).toBeUndefined()
  })

  it('is closed when it does not read its answers', async () => {
    const greedy = connect(app.port, '127.0.0.1').pause()
    await once(greedy, 'connect')
    // Cut while it still writes.
    greedy.on('error', () => {})
    // More answers than the buffers of both sides hold.
    const asked = 30_000
    greedy.write(statsRequest(app).repeat(asked))
    await expect.poll(() => app.connections(), { timeout: 20_000 }).toBe(0)
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
