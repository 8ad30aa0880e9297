import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../../services/api-keys/credentials.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import { type AnyResponse, codeIn, expectEveryPromise, readResponse } from '../../../support/query/shape.ts'

let app: TestApp
let valid: Credentials
beforeEach(async () => {
  app = await startTestApp({ tables: fakeTables().tables, keyLimit: 120, addressLimit: 10 })
  valid = app.issue()
})
afterEach(() => app.close())

const ask = async (headers: Record<string, string>, path = '/stats'): Promise<AnyResponse> => {
  const response = await readResponse(await app.get(path, undefined, headers))
  expectEveryPromise(response)
  return response
}

it('credentials give the same 401 for every cause, except for request id, date and the counters of the bucket', async () => {
  const revoked = app.issue()
  expect((await ask(keyHeaders(revoked))).status).toBe(200)
  app.revoke(revoked.key)
  const unknown = { key: `${valid.key.slice(0, -4)}zzzz`, secret: valid.secret }
  const causes: Record<string, string>[] = [
    {},
    keyHeaders(unknown),
    keyHeaders(revoked),
    keyHeaders({ key: valid.key, secret: 'wrong' }),
    { 'X-API-Key': valid.key },
  ]
  const answers = []
  for (const headers of causes) {
    const { status, headers: received, body } = await ask(headers)
    const own = ['x-request-id', 'date', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'ratelimit']
    const rest = Object.entries(received).filter(([name]) => !own.includes(name))
    answers.push(JSON.stringify({ status, rest, body }))
  }
  expect(new Set(answers).size).toBe(1)
  expect(JSON.parse(answers[0] ?? '').status).toBe(401)
})

describe('the rate limit', () => {
  it('is of each key, names the second at which it admits again, and admits then', async () => {
    const now = Math.floor(app.clock.now() / 1000)
    expect((await ask(keyHeaders(valid))).headers['x-ratelimit-reset']).toBe(String(now))
    await Promise.all(Array.from({ length: 119 }, () => app.get('/stats', valid)))
    const denied = await ask(keyHeaders(valid))
    expect([denied.status, codeIn(denied)]).toEqual([429, 'rate_limited'])
    expect(denied.headers).toMatchObject({ 'x-ratelimit-limit': '120', 'x-ratelimit-remaining': '0' })
    expect((await ask(keyHeaders(app.issue()))).headers['x-ratelimit-remaining']).toBe('119')
    // A window ends a millisecond after 60 s, and both numbers are rounded up.
    expect(denied.headers).toMatchObject({
      'ratelimit-policy': '"default";q=120;w=60',
      ratelimit: '"default";r=0;t=61',
    })
    const reset = Number(denied.headers['x-ratelimit-reset'])
    expect(Number(denied.headers['retry-after'])).toBe(reset - now)
    app.clock.advance(reset * 1000 - app.clock.now())
    expect((await ask(keyHeaders(valid))).status).toBe(200)
  })

  it('limits failed authentication of an address, but never a valid key from the same address', async () => {
    for (let tried = 0; tried < 10; tried++) {
      expect((await ask(keyHeaders({ key: valid.key, secret: `guess ${tried}` }))).status).toBe(401)
    }
    expect((await ask(keyHeaders({ key: valid.key, secret: 'one more' }))).status).toBe(429)
    expect((await ask({}, '/nowhere')).status).toBe(429)
    const accepted = await ask(keyHeaders(valid))
    expect(accepted.status).toBe(200)
    expect(accepted.headers['x-ratelimit-remaining']).toBe('119')
  })

  // A client may write the first address itself. Each proxy adds the one from which it was asked.
  it.each([
    ['separates addresses behind a trusted proxy', '127.0.0.0/8', '203.0.113.2', 9],
    ['counts an address behind a trusted proxy', '127.0.0.0/8', '203.0.113.1', 8],
    ['believes no forwarder if none is trusted', '', '203.0.113.2', 8],
    ['believes no forwarder that is not trusted', '192.0.2.0/24', '203.0.113.2', 8],
    ['believes what each of two proxies added', '127.0.0.1,10.0.0.0/8', '203.0.113.2, 10.0.0.5', 9],
    ['believes nothing before it', '127.0.0.1,10.0.0.0/8', '203.0.113.2, 203.0.113.1, 10.0.0.5', 8],
  ])('%s', async (_, trusted, forwarded, remaining) => {
    const { PLEDGEVIEW_TRUST_PROXY } = readConfig({ PLEDGEVIEW_TRUST_PROXY: trusted })
    const behind = await startTestApp({
      tables: fakeTables().tables,
      addressLimit: 10,
      options: { PLEDGEVIEW_TRUST_PROXY },
    })
    await behind.get('/stats', undefined, { 'X-Forwarded-For': '203.0.113.1' })
    const second = await behind.get('/stats', undefined, { 'X-Forwarded-For': forwarded })
    await behind.close()
    expect(second.headers.get('x-ratelimit-remaining')).toBe(String(remaining))
  })
})

describe('a preflight', () => {
  const preflight = (path: string) =>
    fetch(`http://127.0.0.1:${app.port}${path}`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET' },
    }).then(readResponse)

  it('counts towards a limit of its address that only preflights have', async () => {
    await Promise.all(Array.from({ length: 10 }, () => app.get('/stats')))
    expect((await ask({})).status).toBe(429)
    for (let asked = 0; asked < 10; asked++) expect((await preflight('/api/v1/stats')).status).toBe(204)
    const refused = await preflight('/api/v1/stats')
    expectEveryPromise(refused)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await app.get('/stats', app.issue())).status).toBe(200)
  })
})
