/**
 * Edge cases of the API (3 of 3): input that the HTTP parser refuses, sizes, versions, unwanted bodies, expectations,
 * and pipelined requests.
 */
import { describe, expect, it } from 'vitest'
import { expectEveryPromise } from '../../../support/query-shape.ts'
import { sendRaw } from '../../../support/raw-http.ts'
import {
  ask,
  bare,
  type Edge,
  itAnswers,
  pair,
  raw,
  reader,
  useEdgeApp,
} from '../../../support/raw-http-contract.ts'

const stats = (...headers: string[]) => ask('GET /api/v1/stats', ...headers)
const post = (...headers: string[]) => ask('POST /api/v1/stats', ...headers)
const tls = Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x0d, 0x0a, 0x0d, 0x0a])

// The sender of these is unknown, so they count against the address.
const malformed: Edge[] = (
  [
    ['a line without a target', 'GET\r\n\r\n'],
    ['the start of a TLS handshake', tls],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown version', raw('GET /api/v1/stats HTTP/9.9', 'Host: x')],
    ['an unknown method of no version', raw('FETCH /api/v1/stats', 'Host: x')],
    ['tabs between the parts', raw('GET\t/api/v1/stats\tHTTP/1.1', 'Host: x')],
    ['a space in the target', stats().replace('stats', 'st ats')],
    ['bytes beyond ASCII in the target', Buffer.from(stats().replace('stats', 'st\xe9ts'), 'latin1')],
    ['lines that end in LF alone', 'GET /api/v1/stats HTTP/1.1\nHost: x\n\n'],
    ['a header without a colon', stats('no colon')],
    ['a space before the colon', stats('X-A : b')],
    ['a folded header', stats('X-A: b', ' c')],
    ['a NUL in a header', stats('X-A: a\0b')],
    ['a bare CR in a header', stats('X-A: a\rX-B: b')],
    ['two lengths', post('Content-Length: 1', 'Content-Length: 2')],
    ['the same length twice', post('Content-Length: 1', 'Content-Length: 1')],
    ['a length that is none', post('Content-Length: -1')],
    ['a length beyond 64 bits', post('Content-Length: 99999999999999999999')],
    ['a length of a chunked body', post('Transfer-Encoding: chunked', 'Content-Length: 5')],
  ] satisfies [string, string | Buffer][]
).map(([name, bytes]) => [name, bytes, '400 malformed_request', 'address', 'ends'])

const versions: Edge[] = [
  ['1.0 without Host', raw('GET /api/v1/stats HTTP/1.0', pair(reader)), '200', 'key', 'ends'],
  [
    '1.0 with keep-alive',
    raw('GET /api/v1/stats HTTP/1.0', pair(reader), 'Connection: keep-alive'),
    '200',
    'key',
    'goes on',
  ],
  [
    '1.1 without Host',
    raw('GET /api/v1/stats HTTP/1.1', pair(reader)),
    '400 malformed_request',
    'key',
    'goes on',
  ],
  ['1.1 that ends', stats('Connection: close'), '200', 'key', 'ends'],
  [
    '2.0 in the format of 1.1',
    raw('GET /api/v1/stats HTTP/2.0', 'Host: x', pair(reader)),
    '400 malformed_request',
    'key',
    'ends',
  ],
  ['0.9', 'GET /api/v1/stats\r\n\r\n', '400 malformed_request', 'address', 'ends'],
  ['empty lines before', `\r\n\r\n${stats()}`, '200', 'key', 'goes on'],
]

const sizes: Edge[] = [
  ['headers of just below 16 KB', stats(`X-Big: ${'x'.repeat(16_000)}`), '200', 'key', 'goes on'],
  ['headers of 16 KB', stats(`X-Big: ${'x'.repeat(16_384)}`), '431 headers_too_large', 'address', 'ends'],
  ['headers of 1 MB', stats(`X-Big: ${'x'.repeat(1e6)}`), '431 headers_too_large', 'address', 'ends'],
  ['five thousand headers', stats(...Array(5000).fill('a: b')), '431 headers_too_large', 'address', 'ends'],
  ['a query of 15 KB', ask(`GET /api/v1/projects?x=${'x'.repeat(15_000)}`), '200', 'key', 'goes on'],
  [
    'a query of 40 KB',
    ask(`GET /api/v1/projects?x=${'x'.repeat(40_000)}`),
    '431 headers_too_large',
    'address',
    'ends',
  ],
  [
    'a slug of 40 KB',
    ask(`GET /api/v1/projects/${'x'.repeat(40_000)}`),
    '431 headers_too_large',
    'address',
    'ends',
  ],
]

// A body has no meaning here: it is discarded, and the connection continues after it.
const json = 'Content-Type: application/json'
const bodies: Edge[] = [
  ['GET', `${stats('Content-Length: 3')}abc`, '200', 'key', 'goes on'],
  ['GET, of broken JSON', `${stats(json, 'Content-Length: 9')}{"limit":`, '200', 'key', 'goes on'],
  ['GET, of an unknown type', `${stats('Content-Type: x', 'Content-Length: 1')}x`, '200', 'key', 'goes on'],
  ['GET, in chunks', `${stats('Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`, '200', 'key', 'goes on'],
  ['GET, of 2 MB', `${stats('Content-Length: 2000000')}${'x'.repeat(2e6)}`, '200', 'key', 'goes on'],
  [
    'GET that looks like a request',
    `${stats(`Content-Length: ${stats().length}`)}${stats()}`,
    '200',
    'key',
    'goes on',
  ],
  [
    'GET, without credentials',
    `${bare('GET /api/v1/stats', 'Content-Length: 3')}abc`,
    '401 unauthorized',
    'address',
    'goes on',
  ],
  ['POST', `${post(json, 'Content-Length: 5')}{"a":`, '405 method_not_allowed', 'key', 'goes on'],
  [
    'POST, of 2 MB',
    `${post('Content-Length: 2000000')}${'x'.repeat(2e6)}`,
    '405 method_not_allowed',
    'key',
    'goes on',
  ],
  [
    'POST, in chunks',
    `${post('Transfer-Encoding: chunked')}1\r\nx\r\n0\r\n\r\n`,
    '405 method_not_allowed',
    'key',
    'goes on',
  ],
  ['OPTIONS', `${bare('OPTIONS /api/v1/stats', json, 'Content-Length: 2')}{]`, '204', 'address', 'goes on'],
]

const wishes: Edge[] = [
  ['100-continue', stats('Expect: 100-continue'), '200', 'key', 'ends'],
  [
    '100-continue for a body',
    post('Expect: 100-continue', 'Content-Length: 5'),
    '405 method_not_allowed',
    'key',
    'ends',
  ],
  ['miracles', stats('Expect: miracles'), '200', 'key', 'ends'],
  ['a websocket', stats('Connection: Upgrade', 'Upgrade: websocket'), '200', 'key', 'goes on'],
  [
    'HTTP/2',
    stats('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
    '200',
    'key',
    'goes on',
  ],
  ['a part of the body', stats('Range: bytes=0-9'), '200', 'key', 'goes on'],
  ['another type', stats('Accept: text/html'), '200', 'key', 'goes on'],
  ['another method behind this one', stats('X-HTTP-Method-Override: DELETE'), '200', 'key', 'goes on'],
  ['another path behind this one', stats('X-Original-URL: /metrics'), '200', 'key', 'goes on'],
]

describe('bytes', () => {
  const app = useEdgeApp()
  describe('that are not a request:', () => itAnswers(malformed, app))
  describe('of HTTP/', () => itAnswers(versions, app))
  describe('of a large request:', () => itAnswers(sizes, app))
  describe('of a body after', () => itAnswers(bodies, app))
  describe('that ask for', () => itAnswers(wishes, app))
})

describe('pipelined requests', () => {
  const app = useEdgeApp()
  const statusesOf = async (bytes: string, responses: number) => {
    const answers = await sendRaw(app().port, bytes, { responses })
    for (const answer of answers) expectEveryPromise(answer)
    return answers.map(({ status }) => status)
  }

  it('are answered in order, and errors of the app do not stop them', async () => {
    const bytes =
      stats() +
      ask('GET /api/v1/projects/unknown') +
      ask('GET /api/v1/projects?limit=0') +
      ask('GET /api/v1/projects/%E0%A4%A') +
      `${post('Content-Length: 3')}abc` +
      ask('GET /api/v1/projects') +
      bare('GET /api/v1/stats')
    expect(await statusesOf(bytes, 7)).toEqual([200, 404, 400, 400, 405, 200, 401])
  })

  it.each([
    ['no request', 'nonsense\r\n\r\n', 400],
    ['an unknown method', ask('FETCH /api/v1/stats'), 405],
    ['headers that are too large', stats(`X-Big: ${'x'.repeat(40_000)}`), 431],
    ['CONNECT', bare('CONNECT x:443'), 405],
  ])('are all answered before %s, which ends the connection', async (_, bytes, status) => {
    expect(await statusesOf(stats() + stats() + bytes + stats(), 9)).toEqual([200, 200, status])
  })

  it.each([
    ['a request that asks to close', stats('Connection: close')],
    ['a request of HTTP/1.0', raw('GET /api/v1/stats HTTP/1.0', pair(reader))],
  ])('are not answered after %s', async (_, bytes) => {
    expect(await statusesOf(bytes + stats(), 9)).toEqual([200])
    expect(await statusesOf(`${bytes}nonsense\r\n\r\n`, 9)).toEqual([200])
  })

  it.each([
    ['a chunk that is none', `${stats('Transfer-Encoding: chunked')}zz\r\n`],
    ['an encoding that hides the end of the body', stats('Transfer-Encoding: gzip')],
  ])('are not read out of %s', async (_, bytes) => {
    expect(await statusesOf(bytes + stats(), 9)).toEqual([200])
  })

  it('are each counted', async () => {
    const answers = await sendRaw(app().port, stats().repeat(50), { responses: 50 })
    const remaining = answers.map(({ headers }) => Number(headers['x-ratelimit-remaining']))
    expect(remaining).toEqual(Array.from({ length: 50 }, (_, n) => (remaining[0] ?? 0) - n))
  })
})
