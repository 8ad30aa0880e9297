/** Edge cases of the API (2 of 3): which credentials are accepted. A request counts against a key only if they are. */
import { describe, expect, it } from 'vitest'
import { sendRaw } from '../../../support/raw-http.ts'
import {
  ask,
  bare,
  bearer,
  colons,
  current,
  type Edge,
  earlier,
  expectContract,
  itAnswers,
  outsider,
  pair,
  raw,
  reader,
  useEdgeApp,
} from '../../../support/raw-http-contract.ts'

const stats = (...headers: string[]) => bare('GET /api/v1/stats', ...headers)
const { key, secret } = reader

const accepted: Edge[] = [
  ['two headers', stats(pair(reader)), '200', 'key', 'goes on'],
  ['one header', stats(bearer(reader)), '200', 'key', 'goes on'],
  ['headers in any case', stats(`x-api-key: ${key}`, `X-API-SECRET:   ${secret}  `), '200', 'key', 'goes on'],
  ['a scheme in any case', stats(`Authorization: bEARER   ${key}:${secret}`), '200', 'key', 'goes on'],
  ['both forms that agree', stats(pair(reader), bearer(reader)), '200', 'key', 'goes on'],
  ['another scheme beside', stats(pair(reader), 'Authorization: Basic eDp5'), '200', 'key', 'goes on'],
  ['a secret with its prefix', stats(pair(current)), '200', 'key', 'goes on'],
  ['a secret with its prefix in one header', stats(bearer(current)), '200', 'key', 'goes on'],
  ['a secret of the earlier form', stats(pair(earlier)), '200', 'key', 'goes on'],
  ['a secret of the earlier form in one header', stats(bearer(earlier)), '200', 'key', 'goes on'],
  ['a secret with colons', stats(pair(colons)), '200', 'key', 'goes on'],
  ['a secret with colons in one header', stats(bearer(colons)), '200', 'key', 'goes on'],
]

const refused: Edge[] = (
  [
    ['none', []],
    ['empty headers', ['X-API-Key:', 'X-API-Secret:']],
    ['an empty bearer', ['Authorization: Bearer']],
    ['a bearer of a colon', ['Authorization: Bearer :']],
    ['an empty Authorization', ['Authorization:']],
    ['no secret', [`X-API-Key: ${key}`]],
    ['no key', [`X-API-Secret: ${secret}`]],
    ['an empty secret', [`Authorization: Bearer ${key}:`]],
    ['no colon', [`Authorization: Bearer ${key}`]],
    ['an unknown key', [pair({ key: 'pv_live_nobody0000000000', secret })]],
    ['a wrong secret', [pair({ key, secret: `${secret}x` })]],
    ['a wrong secret with a colon', [bearer({ key, secret: `${secret}:x` })]],
    ['the secret of another', [pair({ key, secret: outsider.secret })]],
    ['a key in another case', [pair({ key: key.toUpperCase(), secret })]],
    ['a secret of 15 KB', [pair({ key, secret: 'x'.repeat(15_000) })]],
    ['bytes beyond ASCII', [pair({ key: 'pv_live_\xff\xfe', secret: '\xe9' })]],
    ['another scheme', ['Authorization: Basic eDp5']],
    ['a name of every object', [pair({ key: '__proto__', secret: 'constructor' })]],
    ['forms of two keys', [pair(reader), bearer(outsider)]],
    ['a good pair, a bad bearer', [pair(reader), bearer({ key, secret: 'x' })]],
    ['a bad pair, a good bearer', [pair({ key, secret: 'x' }), bearer(reader)]],
    ['half a pair, a good bearer', [`X-API-Key: ${key}`, bearer(reader)]],
    ['an empty bearer beside a good pair', [pair(reader), 'Authorization: Bearer']],
    ['the key twice', [pair(reader), `X-API-Key: ${key}`]],
    ['the secret twice', [pair(reader), `X-API-Secret: ${secret}`]],
    ['a good bearer, then another', [bearer(reader), bearer(outsider)]],
    ['another bearer, then a good one', [bearer(outsider), bearer(reader)]],
    ['the same bearer twice', [bearer(reader), bearer(reader)]],
    ['a good pair and two bearers', [pair(reader), bearer(reader), bearer(reader)]],
  ] satisfies [string, string[]][]
).map(([name, headers]) => [name, stats(...headers), '401 unauthorized', 'address', 'goes on'])

const inTheQuery = `api_key=${key}&api_secret=${secret}&key=${key}&secret=${secret}&access_token=${key}:${secret}`
const elsewhere: Edge[] = [
  ['the query', bare(`GET /api/v1/stats?${inTheQuery}`), '401 unauthorized', 'address', 'goes on'],
  [
    'the target',
    bare(`GET http://${key}:${secret}@x/api/v1/stats`),
    '401 unauthorized',
    'address',
    'goes on',
  ],
  [
    'a cookie',
    stats(`Cookie: X-API-Key=${key}; X-API-Secret=${secret}`),
    '401 unauthorized',
    'address',
    'goes on',
  ],
  ['the header of a proxy', stats(`Proxy-${bearer(reader)}`), '401 unauthorized', 'address', 'goes on'],
  ['the body', `${stats('Content-Length: 9')}api_key=1`, '401 unauthorized', 'address', 'goes on'],
]

describe('credentials', () => {
  const app = useEdgeApp()
  describe('are accepted:', () => itAnswers(accepted, app))
  describe('are refused:', () => itAnswers(refused, app))
  describe('are not read from', () => itAnswers(elsewhere, app))
})

describe('a header given twice', () => {
  const app = useEdgeApp()
  const twice: Edge[] = [
    ['Host', ask('GET /api/v1/stats', 'Host: x'), '400 malformed_request', 'key', 'goes on'],
    [
      'Host in HTTP/1.0',
      raw('GET / HTTP/1.0', 'Host: x', 'host: y'),
      '400 malformed_request',
      'address',
      'ends',
    ],
    ['Accept', ask('GET /api/v1/stats', 'Accept: a/b', 'Accept: text/html'), '200', 'key', 'goes on'],
    [
      'If-None-Match',
      ask('GET /api/v1/stats', 'If-None-Match: "a"', 'If-None-Match: "b"'),
      '200',
      'key',
      'goes on',
    ],
    ['X-Request-Id', ask('GET /api/v1/stats', 'X-Request-Id: a', 'X-Request-Id: b'), '200', 'key', 'goes on'],
  ]
  itAnswers(twice, app)

  it('may be a list: each tag of two If-None-Match headers can match', async () => {
    const { port } = app()
    const [first] = await sendRaw(port, ask('GET /api/v1/stats'))
    const tag = `If-None-Match: ${first?.headers.etag}`
    for (const tags of [
      [tag, 'If-None-Match: "other"'],
      ['If-None-Match: "other"', tag],
    ]) {
      const [confirmed] = await sendRaw(port, ask('GET /api/v1/stats', ...tags))
      if (confirmed === undefined) throw new Error('no response')
      expectContract(confirmed, '304')
      expect(confirmed.headers.etag).toBe(first?.headers.etag)
    }
  })
})
