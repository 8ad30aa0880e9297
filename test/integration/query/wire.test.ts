/** Requests that no client library would send, as bytes: each answer keeps every promise of the API. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Credentials } from '../../../services/shared/credentials.ts'
import { startTestApp, type TestApp } from '../../support/query-app.ts'
import { fakeTables } from '../../support/query-fake-tables.ts'
import { exchangeRaw } from '../../support/query-raw.ts'
import { codeIn, expectEveryPromise } from '../../support/query-shape.ts'

let app: TestApp
let valid: Credentials
beforeAll(async () => {
  app = await startTestApp({ tables: fakeTables().tables, keyLimit: 100_000, addressLimit: 100_000 })
  valid = app.issue()
})
afterAll(() => app.close())

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const auth = () => `X-API-Key: ${valid.key}\r\nX-API-Secret: ${valid.secret}`
const get = (path: string, ...headers: string[]) =>
  lines(`GET /api/v1${path} HTTP/1.1`, 'Host: x', auth(), ...headers)

interface Case {
  name: string
  bytes: () => string | Buffer
  status: number
  code?: string
  bodiless?: boolean
}

const cases: Case[] = [
  { name: 'a plain request', bytes: () => get('/stats'), status: 200 },
  { name: 'HTTP/1.0 without Host', bytes: () => lines('GET /api/v1/stats HTTP/1.0', auth()), status: 200 },
  {
    name: 'an absolute target',
    bytes: () => lines('GET http://x/api/v1/stats HTTP/1.1', 'Host: x', auth()),
    status: 200,
  },
  {
    name: 'an absolute target without a path',
    bytes: () => lines('GET http://x HTTP/1.1', 'Host: x', auth()),
    status: 404,
    code: 'not_found',
  },
  {
    name: 'a bearer whose secret has a colon',
    bytes: () => lines('GET /api/v1/stats HTTP/1.1', 'Host: x', `Authorization: Bearer ${valid.key}:a:b`),
    status: 401,
    code: 'unauthorized',
  },
  {
    name: 'both forms of the credentials',
    bytes: () => get('/stats', `Authorization: Bearer ${valid.key}:${valid.secret}`),
    status: 200,
  },
  {
    name: 'a key header given twice',
    bytes: () => get('/stats', `X-API-Key: ${valid.key}`),
    status: 401,
    code: 'unauthorized',
  },
  {
    name: 'no Host',
    bytes: () => lines('GET /api/v1/stats HTTP/1.1', auth()),
    status: 400,
    code: 'malformed_request',
  },
  { name: 'a malformed request line', bytes: () => 'GET\r\n\r\n', status: 400, code: 'malformed_request' },
  {
    name: 'noise',
    bytes: () => Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x0d, 0x0a, 0x0d, 0x0a]),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'an unknown version',
    bytes: () => lines('GET /api/v1/stats HTTP/9.9', 'Host: x'),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'a malformed header',
    bytes: () => lines('GET /api/v1/stats HTTP/1.1', 'Host: x', 'no colon'),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'two lengths',
    bytes: () => lines('POST /api/v1/stats HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2'),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'headers of 40 KB',
    bytes: () => get('/stats', `X-Big: ${'x'.repeat(40_000)}`),
    status: 431,
    code: 'headers_too_large',
  },
  {
    name: 'a request line of 40 KB',
    bytes: () => get(`/projects/${'x'.repeat(40_000)}`),
    status: 431,
    code: 'headers_too_large',
  },
  {
    name: 'a slug of 10 KB',
    bytes: () => get(`/projects/${'x'.repeat(10_000)}`),
    status: 404,
    code: 'not_found',
  },
  {
    name: 'an unknown path of 10 KB',
    bytes: () => get(`/nowhere/${'x'.repeat(10_000)}`),
    status: 404,
    code: 'not_found',
  },
  {
    name: 'bad percent-encoding in the path',
    bytes: () => get('/projects/%E0%A4%A'),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'bad percent-encoding in an unknown path',
    bytes: () => get('/nowhere/%zz'),
    status: 400,
    code: 'malformed_request',
  },
  {
    name: 'bad percent-encoding in the query',
    bytes: () => get('/projects?category=%E0%A4%A'),
    status: 400,
    code: 'invalid_parameter',
  },
  {
    name: 'a parameter given twice',
    bytes: () => get('/projects?limit=1&limit=1'),
    status: 400,
    code: 'invalid_parameter',
  },
  { name: 'an empty slug', bytes: () => get('/projects/'), status: 404, code: 'not_found' },
  {
    name: 'a slug that is a path',
    bytes: () => get('/projects/a-slug/rewards'),
    status: 404,
    code: 'not_found',
  },
  {
    name: 'a slug that decodes to a path',
    bytes: () => get('/projects/..%2Fstats'),
    status: 404,
    code: 'not_found',
  },
  { name: 'a slug of NUL', bytes: () => get('/projects/%00'), status: 404, code: 'not_found' },
  { name: 'a doubled slash', bytes: () => get('//stats'), status: 404, code: 'not_found' },
  { name: 'the root', bytes: () => lines('GET / HTTP/1.1', 'Host: x'), status: 404, code: 'not_found' },
  { name: 'HEAD', bytes: () => get('/stats').replace('GET', 'HEAD'), status: 405, bodiless: true },
  {
    name: 'POST with a body',
    bytes: () =>
      `${get('/stats', 'Content-Type: application/json', 'Content-Length: 5').replace('GET', 'POST')}{"a":`,
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'POST of an unknown type',
    bytes: () => `${get('/stats', 'Content-Type: x', 'Content-Length: 1').replace('GET', 'POST')}x`,
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'POST that expects to continue',
    bytes: () => get('/stats', 'Expect: 100-continue', 'Content-Length: 5').replace('GET', 'POST'),
    status: 405,
    code: 'method_not_allowed',
  },
  { name: 'an expectation that nobody meets', bytes: () => get('/stats', 'Expect: miracles'), status: 200 },
  {
    name: 'POST to an absolute target',
    bytes: () => lines('POST http://x/api/v1/stats HTTP/1.1', 'Host: x', 'Content-Length: 0'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'POST to an unknown path',
    bytes: () => get('/nowhere', 'Content-Length: 0').replace('GET', 'POST'),
    status: 404,
    code: 'not_found',
  },
  {
    name: 'PUT',
    bytes: () => get('/projects/a-slug', 'Content-Length: 0').replace('GET', 'PUT'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'TRACE',
    bytes: () => get('/stats').replace('GET', 'TRACE'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'a method of WebDAV',
    bytes: () => get('/stats').replace('GET', 'PROPFIND'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'QUERY',
    bytes: () => get('/projects', 'Content-Length: 0').replace('GET', 'QUERY'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'an unknown method',
    bytes: () => get('/stats').replace('GET', 'FETCH'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'CONNECT',
    bytes: () => lines('CONNECT example.com:443 HTTP/1.1', 'Host: example.com'),
    status: 405,
    code: 'method_not_allowed',
  },
  {
    name: 'an upgrade',
    bytes: () => get('/stats', 'Connection: Upgrade', 'Upgrade: websocket'),
    status: 200,
  },
  { name: 'OPTIONS of everything', bytes: () => lines('OPTIONS * HTTP/1.1', 'Host: x'), status: 204 },
  {
    name: 'OPTIONS with a body',
    bytes: () => `${lines('OPTIONS /api/v1/stats HTTP/1.1', 'Host: x', 'Content-Length: 2')}{}`,
    status: 204,
  },
  {
    name: 'OPTIONS of a path that is badly encoded',
    bytes: () => lines('OPTIONS /api/v1/projects/%E0 HTTP/1.1', 'Host: x'),
    status: 204,
  },
  {
    name: 'GET with a body',
    bytes: () => `${get('/stats', 'Content-Type: application/json', 'Content-Length: 9')}{"limit":1`,
    status: 200,
  },
  {
    name: 'GET with a chunked body',
    bytes: () => `${get('/stats', 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`,
    status: 200,
  },
]

describe('a request as bytes', () => {
  it.each(cases)('$name is answered with $status', async ({ bytes, status, code, bodiless = false }) => {
    const [response] = await exchangeRaw(app.port, bytes(), { bodiless })
    if (response === undefined) throw new Error('no answer')
    expect(response.status).toBe(status)
    expectEveryPromise(response, { bodiless })
    if (code !== undefined) expect(codeIn(response)).toBe(code)
    if (status === 405) expect(response.headers.allow).toBe('GET, OPTIONS')
    expect(response.body).not.toContain(valid.secret)
  })

  it('leaves no answer without a place in a bucket: also bytes that are no request take one of the address', async () => {
    const remaining = async (bytes: string) => {
      const [response] = await exchangeRaw(app.port, bytes)
      return Number(response?.headers['x-ratelimit-remaining'])
    }
    const before = await remaining('GET\r\n\r\n')
    expect(await remaining('GET\r\n\r\n')).toBe(before - 1)
    expect(await remaining(get('/stats', `X-Big: ${'x'.repeat(40_000)}`))).toBe(before - 2)
    expect(await remaining(lines('GET /nowhere HTTP/1.1', 'Host: x'))).toBe(before - 3)
  })
})

describe('pipelined requests', () => {
  it('are answered in their order', async () => {
    const bytes = get('/stats') + get('/projects/nobody') + get('/projects?limit=0') + get('/projects')
    const responses = await exchangeRaw(app.port, bytes, { responses: 4 })
    expect(responses.map(({ status }) => status)).toEqual([200, 404, 400, 200])
    for (const response of responses) expectEveryPromise(response)
  })

  it('are answered before the error of the bytes that follow them', async () => {
    const responses = await exchangeRaw(app.port, `${get('/stats')}nonsense\r\n\r\n`, { responses: 2 })
    expect(responses.map(({ status }) => status)).toEqual([200, 400])
    for (const response of responses) expectEveryPromise(response)
    const unknown = get('/stats').replace('GET', 'FETCH')
    const others = await exchangeRaw(app.port, get('/stats') + unknown, { responses: 2 })
    expect(others.map(({ status }) => status)).toEqual([200, 405])
  })

  it('go on after an error that the app itself answered', async () => {
    const bytes = get('/projects/%E0%A4%A') + get('/stats')
    const responses = await exchangeRaw(app.port, bytes, { responses: 2 })
    expect(responses.map(({ status }) => status)).toEqual([400, 200])
  })
})
