/** Direct answers: a client gets the same bytes as from the app. */
import { channel } from 'node:diagnostics_channel'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCache } from '../../../../services/query/cache/cache.ts'
import { responses } from '../../../../services/query/cache/response-cache.ts'
import {
  createMemoryRateLimiter,
  type RateLimiter,
} from '../../../../services/query/rate-limit/rate-limiter.ts'
import { keyHeaders, startTestApp, testClock } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import {
  connectRaw,
  type RawConnection,
  type RawResponse,
  rawRequest,
} from '../../../support/query/raw-http.ts'

/** How many requests the framework has handled, in all apps. */
let handled = 0
const handlerStarts = channel('tracing:fastify.request.handler:start')
const count = () => void handled++
beforeEach(() => handlerStarts.subscribe(count))
afterEach(() => void handlerStarts.unsubscribe(count))

interface Step {
  method: string
  target: string
  version: string
  headers: Record<string, string>
  secret: 'right' | 'wrong' | 'none'
  isRevoked: boolean
  waitMs: number
}

const limit = 6

/** An app on a connection of its own, and everything that it does: log lines, metrics, lookups of the cache and usage. */
async function watch({ isDirect }: { isDirect: boolean }) {
  const records: unknown[] = []
  const log: string[] = []
  const clock = testClock()
  let seconds = 0
  let snapshots = 0
  const limiterOf = ({ hitNow, ...others }: RateLimiter): RateLimiter =>
    isDirect && hitNow ? { ...others, hitNow } : others
  const memory = () =>
    limiterOf(createMemoryRateLimiter({ limit, windowMs: 60_000 }, { bucketsMax: 10, now: clock.now }))
  const app = await startTestApp({
    tables: fakeTables().tables,
    clock,
    log,
    // The log leaves lines out if a second has too many of them.
    runtime: { monotonicMs: () => ++seconds * 1000 },
    overrides: {
      cache: createCache(responses, {
        ...{ bytesMax: 1_000_000, now: clock.now },
        onLookup: isHit => records.push({ isHit }),
      }),
      limiters: { keys: memory(), addresses: memory() },
      newRequestId: () => 'a request id',
      newSnapshotId: () => `snapshot ${++snapshots}`,
      onRequestDone: ({ elapsedMs, ...done }) => records.push(done),
      onKeyAnswered: (_, status, isDeprecated) => records.push({ status, isDeprecated }),
    },
  })
  const credentials = app.issue()
  let connection: RawConnection | undefined
  return {
    records,
    async send(step: Step): Promise<RawResponse | undefined> {
      const { method, target, version, headers, secret, isRevoked, waitMs } = step
      if (isRevoked) app.revoke(credentials.key)
      clock.advance(waitMs)
      connection ??= await connectRaw(app.port)
      const presented = secret === 'right' ? credentials : { ...credentials, secret: 'wrong' }
      const all = { host: 'x', ...(secret !== 'none' && keyHeaders(presented)), ...headers }
      const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
      const before = records.length
      connection.send(`${method} ${target} HTTP/${version}\r\n${lines.join('')}\r\n`)
      const response = await connection.next({ bodiless: method === 'HEAD' })
      if (response === undefined || response.headers.connection !== 'keep-alive') {
        connection.close()
        connection = undefined
      }
      // The log and the metrics come after the response.
      await expect.poll(() => records.length).toBeGreaterThan(before)
      await expect.poll(() => log).toHaveLength(1)
      const { time, ms, pid, hostname, key, ...line } = JSON.parse(log.pop() as string)
      records.push(line)
      return response && { ...response, headers: { ...response.headers, date: '' } }
    },
    async close() {
      connection?.close()
      await app.close()
    },
  }
}

const get: Step = {
  method: 'GET',
  target: '/api/v1/projects?limit=5',
  version: '1.1',
  headers: {},
  secret: 'right',
  isRevoked: false,
  waitMs: 0,
}

describe('a direct answer', () => {
  let watched: Awaited<ReturnType<typeof watch>>
  beforeEach(async () => {
    watched = await watch({ isDirect: true })
  })
  afterEach(() => watched.close())

  it.each([
    '/api/v1/projects?limit=5&api_secret=s',
    '/api/v1/projects?api_secret',
    '/api/v1/projects/a-slug?api_secret=s',
    'http://user:secret@x/api/v1/projects',
  ])('is not given to a target that may hold a secret, which is not kept: %s', async target => {
    const counts: number[] = []
    for (let sent = 0; sent < 2; sent++) {
      const before = handled
      await watched.send({ ...get, target })
      counts.push(handled - before)
    }
    // By the framework, both times.
    expect(counts[1]).toBe(counts[0])
  })

  it('to a client that has gone is reported with a status that no answer has, as an answer of the app is', async () => {
    const statuses: number[] = []
    let leaving: RawConnection | undefined
    const app = await startTestApp({
      tables: fakeTables().tables,
      overrides: {
        newRequestId: () => {
          leaving?.reset()
          return 'a request id'
        },
        onRequestDone: ({ status }) => statuses.push(status),
      },
    })
    try {
      const credentials = app.issue()
      expect((await app.get('/stats', credentials)).status).toBe(200)
      const before = handled
      leaving = await connectRaw(app.port)
      leaving.send(rawRequest('GET /api/v1/stats', credentials))
      await expect.poll(() => statuses).toEqual([200, 499])
      expect(handled).toBe(before)
    } finally {
      await app.close()
    }
  })
})

function mostly<T>(usual: T, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(usual) }, fc.constantFrom(...others))
}

const steps = fc.array(
  fc.record<Step>(
    {
      method: mostly('GET', 'HEAD', 'OPTIONS', 'POST'),
      target: fc.oneof(
        fc.constantFrom('/api/v1/projects?limit=1', '/api/v1/projects/a-slug'),
        fc.constantFrom(
          '/api/v1/projects?limit=1&offset=0',
          '/api/v1/projects?limit=1&unknown=1',
          '/api/v1/projects?limit=0',
          '/api/v1/projects/a-slug?x',
          '/api/v1/projects/%61-slug',
          '/api/v1/projects/unknown',
          '/api/v1/stats',
          '/api/v1',
        ),
      ),
      version: mostly('1.1', '1.0'),
      headers: mostly<Record<string, string>>(
        {},
        { 'if-none-match': '*' },
        { 'if-none-match': 'W/"other"' },
        { connection: 'close' },
        { connection: 'keep-alive' },
        { expect: '100-continue' },
        { 'content-length': '0' },
      ),
      secret: mostly<Step['secret']>('right', 'wrong', 'none'),
      isRevoked: fc.integer({ min: 0, max: 30 }).map(drawn => drawn === 0),
      waitMs: fc.constantFrom(0, 0, 0, 999, 20_000),
    },
    { noNullPrototype: true },
  ),
  { minLength: 8, maxLength: 24, size: 'max' },
)

it('a service with direct answers answers, counts, measures and logs any sequence of requests as one without them', async () => {
  let saved = 0
  let digests = 0
  await fc.assert(
    fc.asyncProperty(steps, async sequence => {
      const [direct, plain] = await Promise.all([watch({ isDirect: true }), watch({ isDirect: false })])
      try {
        for (const step of sequence) {
          const before = handled
          const expected = await plain.send(step)
          const between = handled
          expect(await direct.send(step)).toEqual(expected)
          saved += 2 * between - before - handled
          if (expected?.headers['x-data-digest'] === '1-00000000000000ff') digests++
        }
        expect(direct.records).toEqual(plain.records)
      } finally {
        await Promise.all([direct.close(), plain.close()])
      }
    }),
    { numRuns: 20 },
  )
  // Otherwise this has compared the app with itself.
  expect(saved).toBeGreaterThan(0)
  expect(digests).toBeGreaterThan(0)
})
