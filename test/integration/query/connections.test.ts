/** What happens to connections: closed with care, bounded in time and number. */
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/query-app.ts'
import { fakeTables } from '../../support/query-fake-tables.ts'
import { exchangeRaw } from '../../support/query-raw.ts'
import { codeIn, expectEveryPromise } from '../../support/query-shape.ts'

describe('a request in progress when the app closes', () => {
  it('is answered as always, and its connection is closed', async () => {
    let release = () => {}
    let isAsked = false
    const held = new Promise<void>(resolve => {
      release = resolve
    })
    const { tables } = fakeTables()
    const app = await startTestApp({
      tables: {
        rows: async statement => {
          isAsked = true
          await held
          return tables.rows(statement)
        },
      },
    })
    const { key, secret } = app.issue()
    const request = `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}:${secret}\r\n\r\n`
    const exchange = exchangeRaw(app.port, request)
    await expect.poll(() => isAsked).toBe(true)
    const closed = app.close()
    release()
    const [response] = await exchange
    await closed
    if (response === undefined) throw new Error('no answer')
    expect(response.status).toBe(200)
    expectEveryPromise(response)
  })
})

describe('a connection that does not do its part', () => {
  let slow: TestApp
  beforeEach(async () => {
    slow = await startTestApp({
      tables: fakeTables().tables,
      options: { headersTimeoutMs: 150, requestTimeoutMs: 300, connectionsMax: 2 },
    })
  })
  afterEach(() => slow.close())

  it('gets a 408 when its headers do not arrive', async () => {
    const [response] = await exchangeRaw(slow.port, 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n')
    if (response === undefined) throw new Error('no answer')
    expect([response.status, codeIn(response)]).toEqual([408, 'request_timeout'])
    expectEveryPromise(response)
  })

  it('is closed, and not answered twice, when the body of an answered request does not arrive', async () => {
    const bytes = 'POST /api/v1/stats HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n'
    const responses = await exchangeRaw(slow.port, bytes, { responses: 2 })
    expect(responses.map(({ status }) => status)).toEqual([405])
  })

  it('is closed on arrival when there are too many', async () => {
    const idle = [connect(slow.port, '127.0.0.1'), connect(slow.port, '127.0.0.1')]
    await Promise.all(idle.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    expect(
      await exchangeRaw(slow.port, 'GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n').catch(() => []),
    ).toEqual([])
    for (const socket of idle) socket.destroy()
  })
})
