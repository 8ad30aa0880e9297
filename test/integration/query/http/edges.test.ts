/**
 * The edges of the API: every request of the tables gets its answer, from the app and on the fast path (services/query/http/direct-answers.ts),
 * which answers what the app has answered before.
 */
import { describe, expect, it } from 'vitest'
import { sendRaw } from '../../../support/query/raw-http.ts'
import {
  ask,
  bare,
  expectContract,
  itAnswers,
  pair,
  raw,
  reader,
  useEdgeApp,
} from '../../../support/query/raw-http-contract.ts'
import { expectEveryPromise } from '../../../support/query/shape.ts'
import { answered, credentials, refused, whileKeysAreUnknown, withoutPlaces } from './edge-requests.ts'

const stats = (...headers: string[]) => ask('GET /api/v1/stats', ...headers)
const post = (...headers: string[]) => ask('POST /api/v1/stats', ...headers)

describe.each([
  ['the app', false],
  ['the fast path', true],
])('on %s', (_, isDirect) => {
  const app = useEdgeApp({ isDirect })
  describe('a request is answered:', () => itAnswers(answered, app))
  describe('with credentials:', () => itAnswers(credentials, app))
  describe('a request is refused:', () => itAnswers(refused, app))
})

describe('while no requests remain, for', () => {
  const full = useEdgeApp({ keyLimit: 1, addressLimit: 1 }, async ({ port }) => {
    for (const one of [stats(), bare('GET /api/v1/stats'), bare('OPTIONS /')]) await sendRaw(port, one)
  })
  itAnswers(withoutPlaces, full)
})

describe('while the keys are not known, to', () => {
  const lookup = () => {
    throw new Error('connect to 10.1.2.3:8123')
  }
  itAnswers(whileKeysAreUnknown, useEdgeApp({ overrides: { keyRing: { lookup } } }))
})

describe('two If-None-Match headers', () => {
  const app = useEdgeApp()
  it('are a list: each of their tags can match', async () => {
    const { port } = app()
    const [first] = await sendRaw(port, stats())
    const tag = `If-None-Match: ${first?.headers.etag}`
    for (const tags of [
      [tag, 'If-None-Match: "other"'],
      ['If-None-Match: "other"', tag],
    ]) {
      const [confirmed] = await sendRaw(port, stats(...tags))
      if (confirmed === undefined) throw new Error('no response')
      expectContract(confirmed, '304')
      expect(confirmed.headers.etag).toBe(first?.headers.etag)
    }
  })
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
