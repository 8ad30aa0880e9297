/** The log contains what happened, and never what must not be logged. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../../services/api-keys/credentials.ts'
import type { RequestDone } from '../../../../services/query/http/request-log.ts'
import type { RateDecision } from '../../../../services/query/rate-limit/rate-limiter.ts'
import { keyHeaders, startTestApp, type TestApp, type TestAppSettings } from '../../../support/query/app.ts'
import { fakeTables, statsRow } from '../../../support/query/fake-tables.ts'
import { connectRaw, rawRequest, sendRaw } from '../../../support/query/raw-http.ts'

let log: string[]
let done: RequestDone[]
let app: TestApp
let valid: Credentials
beforeEach(async () => {
  log = []
  done = []
  app = await startTestApp({
    tables: fakeTables().tables,
    log,
    overrides: { onRequestDone: request => done.push(request) },
  })
  valid = app.issue()
})
afterEach(() => app.close())

async function restart(settings: Partial<TestAppSettings>): Promise<void> {
  await app.close()
  app = await startTestApp({ tables: fakeTables().tables, log, ...settings })
}

async function logged(count = 1): Promise<Record<string, unknown>[]> {
  await expect.poll(() => log).toHaveLength(count)
  return log.map(line => JSON.parse(line))
}

describe('a log line', () => {
  it('has the request, its key, its parameters and its status', async () => {
    const response = await app.get('/projects?limit=5&status=LIVE&page=3&updated_since=2026-01-01', valid)
    const [line] = await logged()
    expect(line).toMatchObject({
      requestId: response.headers.get('x-request-id'),
      method: 'GET',
      route: '/api/v1/projects',
      parameters: {
        limit: 5,
        offset: 0,
        status: 'LIVE',
        category: null,
        sort: 'newest',
        updatedSince: Date.UTC(2026, 0, 1),
      },
      status: 200,
      key: valid.key.slice(0, 16),
    })
    expect(line?.ms).toBeTypeOf('number')
    expect(done).toEqual([
      {
        method: 'GET',
        route: '/api/v1/projects',
        status: 200,
        elapsedMs: expect.any(Number),
      },
    ])
  })

  it('is written for every response, including those of the framework and the parser', async () => {
    await app.get('/projects/a-slug', valid)
    await app.get('/projects/unknown', valid)
    await app.get('/stats')
    await app.get('/nowhere', valid)
    await app.get('/projects/%E0%A4%A', valid)
    await sendRaw(app.port, 'nonsense\r\n\r\n')
    const lines = await logged(6)
    expect(lines.map(({ status }) => status)).toEqual([200, 404, 401, 404, 400, 400])
    expect(lines[0]).toMatchObject({ route: '/api/v1/projects/:slug', parameters: { slug: 'a-slug' } })
    expect(done.map(({ route, status }) => `${status} ${route}`)).toEqual([
      '200 /api/v1/projects/:slug',
      '404 /api/v1/projects/:slug',
      '401 /api/v1/stats',
      '404 unknown',
      '400 unknown',
      '400 unknown',
    ])
  })

  it('has the time that the request took, and so have the metrics', async () => {
    let time = 0
    const { tables } = fakeTables({
      stats: () => {
        time += 60
        return [statsRow]
      },
    })
    const onRequestDone = (request: RequestDone) => done.push(request)
    await restart({ tables, runtime: { monotonicMs: () => time }, overrides: { onRequestDone } })
    expect((await app.get('/stats', app.issue())).status).toBe(200)
    expect(await logged()).toMatchObject([{ ms: 60 }])
    expect(done).toMatchObject([{ elapsedMs: 60 }])
  })

  it('is written for a request whose client went before its turn, with a status that no answer has', async () => {
    let requests = 0
    const held: ((rows: object[]) => void)[] = []
    const tables = { rows: <Row>() => new Promise<Row[]>(resolve => held.push(resolve as () => void)) }
    const newRequestId = () => `request-${++requests}`
    const onRequestDone = (request: RequestDone) => done.push(request)
    await restart({ tables, options: { uncachedPerKeyMax: 1 }, overrides: { onRequestDone, newRequestId } })
    const valid = app.issue()
    const first = app.get('/projects/first', valid)
    await expect.poll(() => held, { timeout: 20_000 }).toHaveLength(1)
    const leaving = await connectRaw(app.port)
    leaving.send(rawRequest('GET /api/v1/projects/second', valid))
    await expect.poll(() => requests, { timeout: 20_000 }).toBe(2)
    leaving.close()
    await expect.poll(() => app.connections(), { timeout: 20_000 }).toBe(1)
    held[0]?.([])
    expect((await first).status).toBe(404)
    const lines = await logged(2)
    expect(lines.map(({ status }) => status).toSorted()).toEqual([404, 499])
    expect(done.map(({ status, route }) => `${status} ${route}`).toSorted()).toEqual([
      '404 /api/v1/projects/:slug',
      '499 /api/v1/projects/:slug',
    ])
  })

  it('is written for a stranger who went before a limiter of another process has decided', async () => {
    let hits = 0
    const decided = Promise.withResolvers<RateDecision>()
    const hit = () => {
      hits++
      return decided.promise
    }
    const limiter = { settings: { limit: 120, windowMs: 60_000 }, hit }
    await restart({ overrides: { limiters: { keys: limiter, addresses: limiter } } })
    const leaving = await connectRaw(app.port)
    leaving.send('GET /api/v1/stats HTTP/1.1\r\nHost: x\r\n\r\n')
    await expect.poll(() => hits, { timeout: 20_000 }).toBe(1)
    leaving.close()
    expect(await logged()).toMatchObject([{ status: 499, route: '/api/v1/stats' }])
    decided.resolve({ allowed: true, limit: 120, windowMs: 60_000, remaining: 119, delayMs: 0 })
  })

  it('contains no secret, wherever a client has put it', async () => {
    const { key, secret } = valid
    const places: [string, Record<string, string>][] = [
      [`/stats?api_secret=${secret}`, keyHeaders(valid)],
      [`/projects?limit=${secret}`, keyHeaders(valid)],
      [`/projects?sort=${secret}`, keyHeaders(valid)],
      [`/projects?updated_since=${secret}`, keyHeaders(valid)],
      [`/projects/${secret}`, keyHeaders(valid)],
      [`/${secret}`, keyHeaders(valid)],
      [`/projects/${secret}%E0%A4%A`, keyHeaders(valid)],
      ['/stats', { 'X-API-Key': secret, 'X-API-Secret': key }],
      ['/stats', { Authorization: `Bearer ${secret}:${key}` }],
      ['/stats', { Authorization: `Bearer ${key}:${secret}` }],
      ['/stats', { 'X-Request-Id': secret, 'User-Agent': secret, Cookie: secret }],
    ]
    for (const [path, headers] of places) await app.get(path, undefined, headers)
    await sendRaw(app.port, `GET /api/v1/stats HTTP/1.1\r\nX-API-Secret: ${secret}\r\nno colon\r\n\r\n`)
    const text = (await logged(places.length + 1)).map(line => JSON.stringify(line)).join('\n')
    expect(text).not.toContain(secret)
    expect(text).not.toContain(secret.slice(0, 16))
    expect(text).not.toContain(key)
  })

  it('has the prefix of a known key only: no part of an unknown key is known to be public', async () => {
    await app.get('/stats', { key: 'pv_live_unknown000000', secret: valid.secret })
    await app.get('/stats', { key: valid.key, secret: 'wrong' })
    const [unknown, wrong] = await logged(2)
    expect(unknown).not.toHaveProperty('key')
    expect(wrong).toMatchObject({ status: 401, key: valid.key.slice(0, 16) })
  })
})

describe('the log', () => {
  const linesOf = (log: readonly string[]) =>
    log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request')

  it('has a bounded number of lines a second of requests without a valid key, and the number that it left out', async () => {
    let time = 0
    await restart({ addressLimit: 1, runtime: { monotonicMs: () => time, sleep: async () => {} } })
    for (let asked = 0; asked < 60; asked++) expect((await app.get('/stats')).status).not.toBe(200)
    await expect.poll(() => linesOf(log)).toHaveLength(20)
    expect(linesOf(log).every(({ omitted }) => omitted === undefined)).toBe(true)
    // A valid key's requests have their lines all the time.
    const valid = app.issue()
    for (let asked = 0; asked < 30; asked++) expect((await app.get('/stats', valid)).status).toBe(200)
    await expect.poll(() => linesOf(log)).toHaveLength(50)
    time += 1_000
    expect((await app.get('/stats')).status).toBe(429)
    await expect.poll(() => linesOf(log)).toHaveLength(51)
    expect(linesOf(log).at(-1)).toMatchObject({ status: 429, omitted: 40 })
  })

  it('has as few lines of a key that goes on beyond its limit', async () => {
    await restart({ keyLimit: 2, runtime: { monotonicMs: () => 0 } })
    const valid = app.issue()
    for (let asked = 0; asked < 42; asked++) await app.get('/stats', valid)
    await expect.poll(() => linesOf(log)).toHaveLength(22)
  })
})
