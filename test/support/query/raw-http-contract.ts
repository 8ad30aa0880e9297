/**
 * The contract of the public port as tables of requests: the request, the response, the bucket that it counts against,
 * and whether the connection continues. Each response is checked against everything that holds for its status.
 */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ErrorCode, errorBody } from '../../../contracts/api/errors.ts'
import { type Credentials, generateSecret, hashSecret } from '../../../services/api-keys/credentials.ts'
import type { ApiKey } from '../../../services/query/auth/key-ring.ts'
import { pepper, startTestApp, type TestApp, type TestAppSettings } from './app.ts'
import { fakeTables } from './fake-tables.ts'
import { connectRaw, sendRaw } from './raw-http.ts'
import { type AnyResponse, expectEveryPromise, namesIn } from './shape.ts'

/** A key with the read scope, one with others, and one whose secret contains colons. */
export const reader: Credentials = { key: 'pv_live_reader0000000000', secret: 'the-secret-of-the-reader' }
export const outsider: Credentials = { key: 'pv_live_outsider00000000', secret: 'the-secret-of-the-outsider' }
export const colons: Credentials = { key: 'pv_live_colons0000000000', secret: ':a:secret:of:colons:' }
/** Secrets as they are made now, and as they were made before they had a prefix. */
export const current: Credentials = {
  key: 'pv_live_current000000000',
  secret: generateSecret(count => new Uint8Array(count).fill(7)),
}
export const earlier: Credentials = {
  key: 'pv_live_earlier000000000',
  secret: Buffer.alloc(32, 251).toString('base64url'),
}

const keys = new Map<string, ApiKey>(
  [reader, outsider, colons, current, earlier].map(({ key, secret }) => [
    key,
    {
      key,
      secretHash: hashSecret(pepper, secret),
      scopes:
        secret === outsider.secret ? ['write:public', 'READ:PUBLIC', 'read:publi'] : ['other', 'read:public'],
    },
  ]),
)

/** Header lines with the credentials, in two headers or in one. */
export const pair = ({ key, secret }: Credentials) => `X-API-Key: ${key}\r\nX-API-Secret: ${secret}`
export const bearer = ({ key, secret }: Credentials) => `Authorization: Bearer ${key}:${secret}`

/** A request of these lines, byte for byte. */
export const raw = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`
/** A request without credentials. The line has no version. */
export const bare = (line: string, ...headers: string[]) => raw(`${line} HTTP/1.1`, 'Host: x', ...headers)
/** A request with the reader's key. */
export const ask = (line: string, ...headers: string[]) => bare(line, pair(reader), ...headers)

type Answer = '200' | '204' | '304' | `${number} ${ErrorCode}`

/** Requests by their names, with one answer: its status and error code, the bucket that is counted, and what happens to the connection. */
export function edges(
  answer: Answer,
  takes: 'key' | 'address' | 'nothing',
  then: 'goes on' | 'ends',
  requests: Readonly<Record<string, string | Buffer>>,
) {
  return { answer, takes, then, requests }
}

type Edges = ReturnType<typeof edges>

/** Starts an app for the calling suite, with the keys above. `isDirect`: it has direct answers, which each request could get. */
export function useEdgeApp(
  { isDirect = false, ...settings }: Partial<TestAppSettings> = {},
  prepare?: (app: TestApp) => Promise<unknown>,
) {
  let app: TestApp
  beforeAll(async () => {
    const limits = { keyLimit: 10_000, addressLimit: 10_000 }
    const keyRing = { lookup: (key: string) => keys.get(key) }
    const tables = fakeTables().tables
    app = await startTestApp({ tables, ...limits, isDirect, overrides: { keyRing }, ...settings })
    await prepare?.(app)
  })
  afterAll(() => app.close())
  return Object.assign(() => app, { isDirect })
}

/** Runs a test per request. If the app is to answer directly, the request is sent twice: the first time teaches its target. */
export function itAnswers(tables: readonly Edges[], app: (() => TestApp) & { isDirect: boolean }): void {
  const rows = tables.flatMap(({ requests, ...edge }) =>
    Object.entries(requests).map(([name, bytes]) => ({ name, bytes, ...edge })),
  )
  it.each(rows)('$name: $answer', async ({ bytes, answer, takes, then }) => {
    const { port, counted } = app()
    if (app.isDirect && bytes.toString().startsWith('GET ')) await sendRaw(port, bytes)
    const before = counted()
    const connection = await connectRaw(port)
    connection.send(bytes)
    const response = await connection.next({ bodiless: bytes.toString().startsWith('HEAD ') })
    if (response === undefined) throw new Error('no answer')
    expectContract(response, answer)
    const after = counted()
    expect({ key: after.key - before.key, address: after.address - before.address }).toEqual({
      key: takes === 'key' ? 1 : 0,
      address: takes === 'address' ? 1 : 0,
    })
    expect(response.headers.connection).toBe(then === 'ends' ? 'close' : 'keep-alive')
    // What follows on the connection is a new request or nothing.
    connection.send(bare('OPTIONS /api/v1/stats'))
    expect((await connection.next())?.status).toBe(then === 'ends' ? undefined : 204)
    connection.close()
  })
}

const onEvery =
  'x-request-id access-control-allow-origin access-control-expose-headers x-content-type-options date connection ' +
  'x-ratelimit-limit x-ratelimit-remaining x-ratelimit-reset ratelimit-policy ratelimit'
const onCached = 'cache-control age etag vary'
const onBodies = 'content-type content-length'
const onError = `${onBodies} cache-control`
const onPreflight = 'access-control-allow-methods access-control-allow-headers access-control-max-age allow'
const sentByPages = 'authorization content-type if-none-match if-range range x-api-key x-api-secret'
const onStatus: Record<number, string> = {
  200: `${onBodies} ${onCached}`,
  204: onPreflight,
  304: onCached,
  401: `${onError} www-authenticate`,
  405: `${onError} allow`,
  429: `${onError} retry-after`,
  500: `${onError} retry-after`,
}
// The headers of a list, and of a connection that is kept alive.
const optional = new Set(['x-data-as-of', 'x-snapshot-id', 'x-data-digest', 'link', 'keep-alive'])

/**
 * Fails unless the response has this status, exactly the headers of its status, and, if it is an error, the registered
 * text. So it contains nothing of the request, the cause or the program.
 */
export function expectContract(response: AnyResponse, answer: string): void {
  const { status, headers, body } = response
  const [expectedStatus, code] = answer.split(' ')
  const isBodiless = body === ''
  const given = isBodiless ? code : JSON.parse(body).error?.code
  expect({ status: String(status), code: given }).toEqual({ status: expectedStatus, code })
  expectEveryPromise(response, { bodiless: isBodiless })
  const names = `${onEvery} ${onStatus[status] ?? onError}`.split(' ')
  const extra = Object.keys(headers).filter(name => !names.includes(name) && !optional.has(name))
  expect({ missing: names.filter(name => !(name in headers)), extra }).toEqual({ missing: [], extra: [] })
  if (status >= 400) expect(headers['cache-control']).toBe('no-store')
  if (status === 405 || status === 204) expect(headers.allow).toBe('GET, OPTIONS')
  if (status === 204) {
    expect(headers['access-control-allow-methods']).toBe('GET, OPTIONS')
    expect(namesIn(headers['access-control-allow-headers'])).toBe(sentByPages)
  }
  if (code !== undefined && code !== 'invalid_parameter' && !isBodiless) {
    expect(JSON.parse(body)).toEqual(errorBody(code as ErrorCode))
  }
}
