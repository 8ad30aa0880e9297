/**
 * Requests at the edges of the API, by their answer: status and error code, the bucket that is counted (of a key, of an address,
 * or none), and whether the connection continues.
 */
import {
  ask,
  bare,
  bearer,
  colons,
  current,
  earlier,
  edges,
  outsider,
  pair,
  raw,
  reader,
} from '../../../support/query/raw-http-contract.ts'

const stats = (...headers: string[]) => ask('GET /api/v1/stats', ...headers)
const post = (...headers: string[]) => ask('POST /api/v1/stats', ...headers)
/** Statistics, with other credentials than the reader's. */
const as = (...headers: string[]) => bare('GET /api/v1/stats', ...headers)
const list = (query: string) => ask(`GET /api/v1/projects?${query}`)
const { key, secret } = reader
const json = 'Content-Type: application/json'
const inTheQuery = `api_key=${key}&api_secret=${secret}&key=${key}&secret=${secret}&access_token=${key}:${secret}`

export const answered = [
  edges('200', 'key', 'goes on', {
    'a list': ask('GET /api/v1/projects'),
    'a page with a next one': list('limit=1'),
    'a page far beyond the end': list('offset=9007199254740991'),
    'a campaign': ask('GET /api/v1/projects/a-slug'),
    'the statistics': stats(),
    'a fragment': ask('GET /api/v1/stats#x'),
    'an absolute target': ask('GET http://x/api/v1/stats'),
    'an absolute target in capitals': ask('GET HTTP://x/api/v1/stats'),
    'an encoded path': ask('GET /api/v1/st%61ts?x=%zz'),
    'an unknown parameter twice': list('x=1&x=2'),
    'an unknown parameter, badly encoded': list('x=%zz'),
    'the root, with a key': ask('GET /'),
    'the root, without the scope': bare('GET /', pair(outsider)),
    'the OpenAPI document, with a key': ask('GET /openapi.json'),
    'a request id of its own': stats('X-Request-Id: a', 'X-Request-Id: b'),
    'empty lines before': `\r\n\r\n${stats()}`,
    'headers of just below 16 KB': stats(`X-Big: ${'x'.repeat(16_000)}`),
    'a query of 15 KB': list(`x=${'x'.repeat(15_000)}`),
    'a websocket': stats('Connection: Upgrade', 'Upgrade: websocket'),
    'HTTP/2': stats('Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'),
    'a part of the body': stats('Range: bytes=0-9'),
    'another type': stats('Accept: text/html'),
    'another method behind this one': stats('X-HTTP-Method-Override: DELETE'),
    'another path behind this one': stats('X-Original-URL: /metrics'),
    '1.0 with keep-alive': raw('GET /api/v1/stats HTTP/1.0', pair(reader), 'Connection: keep-alive'),
    // A body has no meaning here: it is discarded, and the connection continues after it.
    'a body': `${stats('Content-Length: 3')}abc`,
    'a body of broken JSON': `${stats(json, 'Content-Length: 9')}{"limit":`,
    'a body of an unknown type': `${stats('Content-Type: x', 'Content-Length: 1')}x`,
    'a body in chunks': `${stats('Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`,
    'a body of 2 MB': `${stats('Content-Length: 2000000')}${'x'.repeat(2e6)}`,
    'a body that looks like a request': `${stats(`Content-Length: ${stats().length}`)}${stats()}`,
  }),
  edges('200', 'key', 'ends', {
    '1.0 without Host': raw('GET /api/v1/stats HTTP/1.0', pair(reader)),
    '1.1 that ends': stats('Connection: close'),
    '100-continue': stats('Expect: 100-continue'),
    'an unknown expectation': stats('Expect: miracles'),
  }),
  edges('200', 'address', 'goes on', {
    'the root, as an absolute target': bare('GET http://x'),
    'the root': bare('GET /'),
    'the root, with a query': bare('GET /?limit=0'),
    'the base address': bare('GET /api/v1'),
    'the base address with a slash': bare('GET /api/v1/'),
    'the OpenAPI document': bare('GET /openapi.json'),
  }),
  edges('304', 'key', 'goes on', {
    'statistics that the client has': stats('If-None-Match: *'),
    'a list that the client has': ask('GET /api/v1/projects', 'If-None-Match: *'),
  }),
  edges('304', 'address', 'goes on', {
    'the root that the client has': bare('GET /', 'If-None-Match: *'),
    'the document that the client has': bare('GET /openapi.json', 'If-None-Match: *'),
  }),
  edges('204', 'address', 'goes on', {
    OPTIONS: bare('OPTIONS /api/v1/projects'),
    'OPTIONS with credentials': ask('OPTIONS /api/v1/projects'),
    'OPTIONS of an unknown path': bare('OPTIONS /nowhere'),
    'OPTIONS of everything': bare('OPTIONS *'),
    'OPTIONS of a bad encoding': bare('OPTIONS /api/v1/projects/%E0'),
    'OPTIONS with a body': `${bare('OPTIONS /api/v1/stats', json, 'Content-Length: 2')}{]`,
  }),
]

export const credentials = [
  edges('200', 'key', 'goes on', {
    'two headers': as(pair(reader)),
    'one header': as(bearer(reader)),
    'headers in any case': as(`x-api-key: ${key}`, `X-API-SECRET:   ${secret}  `),
    'a scheme in any case': as(`Authorization: bEARER   ${key}:${secret}`),
    'both forms that agree': as(pair(reader), bearer(reader)),
    'another scheme beside': as(pair(reader), 'Authorization: Basic eDp5'),
    'a secret with its prefix': as(pair(current)),
    'a secret of the earlier form': as(pair(earlier)),
    'a secret with colons': as(pair(colons)),
    'a secret with colons in one header': as(bearer(colons)),
  }),
  edges('403 forbidden', 'key', 'goes on', {
    'without the scope': as(pair(outsider)),
  }),
  edges('401 unauthorized', 'address', 'goes on', {
    none: as(),
    'none, with a malformed parameter': bare('GET /api/v1/projects?limit=0'),
    'none, with a body': `${as('Content-Length: 3')}abc`,
    'empty headers': as('X-API-Key:', 'X-API-Secret:'),
    'an empty bearer': as('Authorization: Bearer'),
    'no secret': as(`X-API-Key: ${key}`),
    'no key': as(`X-API-Secret: ${secret}`),
    'an empty secret': as(`Authorization: Bearer ${key}:`),
    'no colon': as(`Authorization: Bearer ${key}`),
    'an unknown key': as(pair({ key: 'pv_live_nobody0000000000', secret })),
    'a wrong secret': as(pair({ key, secret: `${secret}x` })),
    'the secret of another key': as(pair({ key, secret: outsider.secret })),
    'a key in another case': as(pair({ key: key.toUpperCase(), secret })),
    'a secret of 15 KB': as(pair({ key, secret: 'x'.repeat(15_000) })),
    'bytes beyond ASCII': as(pair({ key: 'pv_live_\xff\xfe', secret: '\xe9' })),
    'another scheme': as('Authorization: Basic eDp5'),
    'a name of every object': as(pair({ key: '__proto__', secret: 'constructor' })),
    'forms of two keys': as(pair(reader), bearer(outsider)),
    'a good pair, a bad bearer': as(pair(reader), bearer({ key, secret: 'x' })),
    'a bad pair, a good bearer': as(pair({ key, secret: 'x' }), bearer(reader)),
    'half a pair, a good bearer': as(`X-API-Key: ${key}`, bearer(reader)),
    'the other half, a good bearer': as(`X-API-Secret: ${secret}`, bearer(reader)),
    'half a pair, half a bearer': as(`X-API-Key: ${key}`, `Authorization: Bearer :${secret}`),
    'an empty bearer beside a good pair': as(pair(reader), 'Authorization: Bearer'),
    'the key twice': as(pair(reader), `X-API-Key: ${key}`),
    'the secret twice': as(pair(reader), `X-API-Secret: ${secret}`),
    'a good bearer, then another': as(bearer(reader), bearer(outsider)),
    'the same bearer twice': as(bearer(reader), bearer(reader)),
    'a good pair and two bearers': as(pair(reader), bearer(reader), bearer(reader)),
    'those in the query': bare(`GET /api/v1/stats?${inTheQuery}`),
    'those in the target': bare(`GET http://${key}:${secret}@x/api/v1/stats`),
    'those in a cookie': as(`Cookie: X-API-Key=${key}; X-API-Secret=${secret}`),
  }),
]

export const refused = [
  edges('404 not_found', 'key', 'goes on', {
    'no such campaign': ask('GET /api/v1/projects/unknown'),
    'an unknown path': ask('GET /api/v1/nowhere'),
    'a trailing slash': ask('GET /api/v1/stats/'),
    'an empty slug': ask('GET /api/v1/projects/'),
    'a slug that is a path': ask('GET /api/v1/projects/a-slug/rewards'),
    'a slug that decodes to one': ask('GET /api/v1/projects/..%2Fstats'),
    'a slug of NUL': ask('GET /api/v1/projects/%00'),
    'an asterisk': ask('GET *'),
    'ops paths': ask('GET /metrics'),
    'HEAD of an unknown path': ask('HEAD /nowhere'),
    'POST to an unknown path': ask('POST /nowhere', 'Content-Length: 0'),
    'POST to a slug that is a path': ask('POST /api/v1/projects/a-slug/rewards', 'Content-Length: 0'),
  }),
  edges('404 not_found', 'address', 'goes on', {
    'an unknown version': bare('GET /api/v2'),
    'above the versions': bare('GET /api'),
    'a longer base': bare('GET /api/v1x'),
    'a document elsewhere': bare('GET /api/v1/openapi.json'),
  }),
  edges('404 not_found', 'address', 'ends', { 'FETCH of an unknown path': ask('FETCH /nowhere') }),
  edges('400 invalid_parameter', 'key', 'goes on', {
    'limit=0': list('limit=0'),
    'limit=101': list('limit=101'),
    'limit without a value': list('limit'),
    'offset=-1': list('offset=-1'),
    'status=DRAFT': list('status=DRAFT'),
    'sort=oldest': list('sort=oldest'),
    'category=': list('category='),
    'a bad encoding': list('category=%E0%A4%A'),
    'no timestamp': list('updated_since=now'),
    'a repeated parameter': list('limit=1&limit=1'),
    'a repeated parameter, encoded': list('limit=1&l%69mit=1'),
  }),
  edges('400 malformed_request', 'key', 'goes on', {
    'a slug that is badly encoded': ask('GET /api/v1/projects/%E0%A4%A'),
    'a path that is badly encoded': ask('GET /nowhere/%zz'),
    'Host twice': stats('Host: x'),
    '1.1 without Host': raw('GET /api/v1/stats HTTP/1.1', pair(reader)),
  }),
  edges('400 malformed_request', 'key', 'ends', {
    '2.0 in the format of 1.1': raw('GET /api/v1/stats HTTP/2.0', 'Host: x', pair(reader)),
  }),
  // The sender of these is unknown, so they count against the address.
  edges('400 malformed_request', 'address', 'ends', {
    'Host twice in HTTP/1.0': raw('GET / HTTP/1.0', 'Host: x', 'host: y'),
    '0.9': 'GET /api/v1/stats\r\n\r\n',
    'a line without a target': 'GET\r\n\r\n',
    'the start of a TLS handshake': Buffer.from([0x16, 0x03, 0x01, 0x00, 0xff, 0x0d, 0x0a, 0x0d, 0x0a]),
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'an unknown version of HTTP': raw('GET /api/v1/stats HTTP/9.9', 'Host: x'),
    'lines that end in LF alone': 'GET /api/v1/stats HTTP/1.1\nHost: x\n\n',
    'a space before the colon': stats('X-A : b'),
    'two lengths': post('Content-Length: 1', 'Content-Length: 2'),
    'a length of a chunked body': post('Transfer-Encoding: chunked', 'Content-Length: 5'),
  }),
  edges('431 headers_too_large', 'address', 'ends', {
    'headers of 16 KB': stats(`X-Big: ${'x'.repeat(16_384)}`),
    'a query of 40 KB': list(`x=${'x'.repeat(40_000)}`),
    'a slug of 40 KB': ask(`GET /api/v1/projects/${'x'.repeat(40_000)}`),
  }),
  edges('405 method_not_allowed', 'key', 'goes on', {
    HEAD: ask('HEAD /api/v1/stats'),
    POST: post('Content-Length: 0'),
    'POST to an absolute target': ask('POST http://x/api/v1/stats'),
    'POST to an encoded path': ask('POST /api/v1/st%61ts?x=%zz', 'Content-Length: 0'),
    'POST, with JSON': `${post(json, 'Content-Length: 5')}{"a":`,
    'POST, of 2 MB': `${post('Content-Length: 2000000')}${'x'.repeat(2e6)}`,
    DELETE: ask('DELETE /api/v1/projects/a-slug'),
    PROPFIND: ask('PROPFIND /api/v1/stats'),
    QUERY: ask('QUERY /api/v1/projects'),
  }),
  // CONNECT and methods that the parser does not know end the connection.
  edges('405 method_not_allowed', 'key', 'ends', {
    CONNECT: ask('CONNECT x:443'),
    'POST that waits for 100': post('Expect: 100-continue', 'Content-Length: 5'),
  }),
  edges('405 method_not_allowed', 'address', 'goes on', {
    'POST without credentials': bare('POST /api/v1/stats', 'Content-Length: 0'),
    'POST to an absolute target without a path': bare('POST http://x', 'Content-Length: 0'),
    'HEAD of the root': bare('HEAD /'),
    'POST to the root': bare('POST /', 'Content-Length: 0'),
    'POST to the base': bare('POST /api/v1', 'Content-Length: 0'),
  }),
  edges('405 method_not_allowed', 'address', 'ends', {
    'CONNECT without credentials': bare('CONNECT x:443'),
    get: ask('get /api/v1/stats'),
    FETCH: ask('FETCH /api/v1/stats'),
    'FETCH of an absolute target': ask('FETCH http://x/api/v1/stats'),
  }),
]

// The limit is checked before the path, the method and the parameters. A malformed request gets its own error anyway.
export const withoutPlaces = [
  edges('429 rate_limited', 'nothing', 'ends', {
    'a key': stats(),
    'a key, with a body that the client has': stats('If-None-Match: *'),
    'a key, of an unknown path': ask('GET /nowhere'),
    'a key, by another method': post(),
    'a key, with a malformed parameter': list('limit=0'),
    'an address': as(),
    'an address, of a bad encoding': bare('GET /%zz'),
    'a preflight': bare('OPTIONS /api/v1/stats'),
  }),
  edges('400 malformed_request', 'nothing', 'ends', { 'no request': 'GET\r\n\r\n' }),
]

export const whileKeysAreUnknown = [
  edges('500 internal_error', 'nothing', 'goes on', {
    'a key': stats(),
    'no credentials': as(),
    'a bad encoding': ask('GET /%zz'),
  }),
  edges('405 method_not_allowed', 'nothing', 'ends', { CONNECT: ask('CONNECT x:443') }),
  edges('204', 'address', 'goes on', { 'a preflight': bare('OPTIONS /api/v1/stats') }),
]
