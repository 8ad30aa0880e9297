/** Single requests of the client: sending, retries, waiting, caching, and refusals. */
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { type ClientOptions, createClient } from '../../../contracts/api/client.ts'
import { type ErrorCode, errorBody, errors } from '../../../contracts/api/errors.ts'
import { clients } from '../../clients/python-bridge.ts'
import { needs } from '../../support/runner/requirements.ts'

const startsAt = Date.parse('2026-03-01T12:00:00.000Z')
const stats = { data: { currency: 'USD' } }
const fresh = { 'cache-control': 'private, max-age=60', age: '20', etag: 'W/"a"' }

function error(code: ErrorCode, headers: Record<string, string> = {}): () => Response {
  return () => Response.json(errorBody(code), { status: errors[code].status, headers })
}

function ok(body: object = stats, headers: Record<string, string> = {}): () => Response {
  return () => Response.json(body, { headers })
}

/** A client whose requests get these responses in order; the last one repeats. Time passes only by sleeping. */
function clientOf(
  answers: (() => Response | Promise<Response>)[],
  options: Partial<ClientOptions> = {},
  create = createClient,
) {
  const requests: { url: string; headers: Headers }[] = []
  const sleeps: number[] = []
  let time = startsAt
  const client = create({
    baseUrl: 'https://api.example/api/v1/',
    key: 'pv_live_k',
    secret: 'a:b',
    ...options,
    runtime: {
      now: () => time,
      random: () => 0.5,
      async sleep(ms) {
        sleeps.push(ms)
        time += ms
      },
      async fetch(input, init) {
        const answer = answers[Math.min(requests.length, answers.length - 1)]
        requests.push({ url: String(input), headers: new Headers(init?.headers) })
        return answer?.() ?? Response.error()
      },
      ...options.runtime,
    },
  })
  const pass = (ms: number) => {
    time += ms
  }
  return { client, requests, sleeps, pass }
}

/** Call first in a `describe`. */
function creator({ create, needs: requirement }: (typeof clients)[number]) {
  beforeEach(context => needs(context, requirement))
  return (answers: Parameters<typeof clientOf>[0], options?: Partial<ClientOptions>) =>
    clientOf(answers, options, create)
}

function lost(): Promise<Response> {
  return Promise.reject(new TypeError('connection reset'))
}

const silent: typeof fetch = (_, init) =>
  new Promise((_, reject) => {
    const signal = init?.signal
    if (signal?.aborted) return reject(signal.reason)
    signal?.addEventListener('abort', () => reject(signal.reason))
  })

describe.each(clients)('a request, in $language', client => {
  const clientOf = creator(client)

  it('carries the credentials in a header and never in the query', async () => {
    const { client, requests } = clientOf([ok()])
    await client.stats()
    expect(requests[0]?.url).toBe('https://api.example/api/v1/stats')
    expect(requests[0]?.headers.get('authorization')).toBe('Bearer pv_live_k:a:b')
  })

  it('encodes a slug and the parameters of a list', async () => {
    const { client, requests } = clientOf([ok({ data: [], pagination: { total: 0 } })])
    await client.detail('a/b ?')
    await client.list({ category: 'Film & Video', limit: 7, sort: 'most_backed' })
    expect(requests.map(({ url }) => url.slice('https://api.example/api/v1'.length))).toEqual([
      '/projects/a%2Fb%20%3F',
      '/projects?limit=7&category=Film+%26+Video&sort=most_backed',
    ])
  })

  it.each(['.', '..'])('is not sent for the slug %s, which leads to another resource', async slug => {
    const { client, requests } = clientOf([ok()])
    await expect(client.detail(slug)).rejects.toMatchObject({ code: 'not_found' })
    expect(requests).toEqual([])
  })

  it('is retried after a lost connection, 408, 429 and 5xx, each time after a longer random wait', async () => {
    const answers = [lost, error('internal_error'), error('request_timeout'), ok()]
    const { client, requests, sleeps } = clientOf(answers)
    await expect(client.stats()).resolves.toEqual(stats.data)
    expect(requests).toHaveLength(4)
    expect(sleeps).toEqual([500, 1000, 2000])
  })

  it('waits for Retry-After and a random time', async () => {
    const { client, sleeps } = clientOf([error('rate_limited', { 'retry-after': '17' }), ok()])
    await client.stats()
    expect(sleeps).toEqual([17_500])
  })

  it.each(['invalid_parameter', 'unauthorized', 'forbidden', 'not_found'] as const)(
    'is not retried after %s',
    async code => {
      const { client, requests } = clientOf([error(code, { 'x-request-id': 'r1' })])
      const { status } = errors[code]
      await expect(client.detail('slug')).rejects.toMatchObject({ code, status, requestId: 'r1' })
      expect(requests).toHaveLength(1)
    },
  )

  it('is retried within the limits of count and time', async () => {
    const often = clientOf([lost], { attemptsMax: 3 })
    await expect(often.client.stats()).rejects.toMatchObject({ code: 'network_failure' })
    expect(often.requests).toHaveLength(3)
    const long = clientOf([error('rate_limited', { 'retry-after': '50' })], { retryMsMax: 120_000 })
    await expect(long.client.stats()).rejects.toMatchObject({ code: 'rate_limited', retryAfterMs: 50_000 })
    expect(long.requests).toHaveLength(3)
  })
})

it.each([0, 5])(
  'a request without a response ends at once when it is aborted after %d ms',
  { timeout: 5000 },
  async delayMs => {
    const { client } = clientOf([], { runtime: { fetch: silent } })
    const controller = new AbortController()
    const answer = client.stats({ signal: controller.signal })
    if (delayMs > 0) setTimeout(() => controller.abort(new Error('enough')), delayMs)
    else controller.abort(new Error('enough'))
    await expect(answer).rejects.toThrow('enough')
  },
)

describe.each(clients)('a response without a valid X-Data-As-Of, in $language', client => {
  const clientOf = creator(client)
  const body = { data: [], pagination: { total: 0, has_more: false }, kept_since: '2026-01-01T00:00:00.000Z' }
  const dated = ok(body, { 'x-data-as-of': '2026-03-01T11:59:59.000000Z' })

  it.each([
    ['removals', '2026-03-01T11:00:00.000Z', [ok(body, { 'x-data-as-of': 'today' })]],
    ['a list', '2026-03-01T11:00:00.000Z', [dated, ok(body)]],
    ['a whole copy', null, [ok(body)]],
  ])('is not one of this API: %s', async (name, stored, answers) => {
    const { client } = clientOf(answers)
    const store = { load: () => stored, save: () => {} }
    const mirror = client.mirror({ store, from: () => client.wholeCopy() })
    const message = expect.stringContaining(`${name} without a valid X-Data-As-Of`)
    await expect(mirror.next()).rejects.toMatchObject({ code: 'unexpected_response', message })
  })
})

describe.each(clients)('a whole copy that is not as the service writes it, in $language', client => {
  const clientOf = creator(client)
  const line = '{"id":"c1","updated_at":"2026-03-01T11:00:00.000Z"}\n'

  it.each([
    ['with more after its end', 'network_failure', Buffer.concat([gzipSync(line), gzipSync(line)])],
    ['that breaks off', 'network_failure', gzipSync(line).subarray(0, -1)],
    ['with a line that is not JSON', 'unexpected_response', gzipSync(`${line}<p>\n`)],
    ['whose last line does not end', 'unexpected_response', gzipSync(line.trim())],
  ] as const)('is refused: one %s', async (_, code, bytes) => {
    const headers = { 'x-data-as-of': '2026-03-01T11:59:59.000000Z' }
    const { client } = clientOf([() => new Response(bytes, { headers })])
    const read = async () => {
      for await (const _ of client.mirror({ from: () => client.wholeCopy() }));
    }
    await expect(read()).rejects.toMatchObject({ code, message: expect.stringContaining('copy') })
  })
})

it('a whole copy that is refused leaves no connection open', async () => {
  const cancel = vi.fn()
  const { client } = clientOf([() => new Response(new ReadableStream({ cancel }))])
  await expect(client.wholeCopy()).rejects.toThrow('X-Data-As-Of')
  expect(cancel).toHaveBeenCalledOnce()
})

describe.each(clients)('an address that can never work, in $language', client => {
  const clientOf = creator(client)

  it.each([
    'https://api.example:pass/api/v1',
    'https://api.example:99999/api/v1',
    'https://api pass.example/api/v1',
    'http://user:pass@api.example/api/v1',
    'https://api.example/api/v1?key=pass',
    'http://:pass',
    'nonsense',
    'ftp://api.example',
  ])('is refused at once, and not repeated: %s', async baseUrl => {
    const first = async () => clientOf([ok()], { baseUrl }).client.stats()
    await expect(first).rejects.toThrow(/^base_?url must(?!.*(pass|99999))/i)
    await expect(first).rejects.toThrow(RangeError)
  })
})

describe('an invalid option', () => {
  it.each([
    ['secret', { secret: 'ключ' }],
    ['key', { key: '' }],
  ])('is refused at once and named: %s in %o', (name, options) => {
    expect(() => clientOf([ok()], options)).toThrow(new RegExp(`^${name} must`))
  })

  it.each([
    ['reconcile.everyMs', { reconcile: { everyMs: Number.NaN, held: () => [] } }],
    ['reconcile.everyMs', { reconcile: { everyMs: 999, held: () => [] } }],
    ['intervalMs', { intervalMs: 10 }],
    ['pageSize', { pageSize: 101 }],
  ])('of a mirror is refused and named: %s in %o', (name, options) => {
    expect(() => clientOf([ok()]).client.mirror(options)).toThrow(name)
  })

  it('that is a moment needs a timestamp', async () => {
    const list = clientOf([ok()]).client.list({ updatedSince: 'yesterday' })
    await expect(list).rejects.toMatchObject({ code: 'invalid_parameter' })
  })
})

it.for(clients)('a stored watermark in the future is refused, in $language', async (of, context) => {
  needs(context, of.needs)
  const { client, requests } = clientOf([ok()], {}, of.create)
  const store = { load: () => '2199-01-01T00:00:00.000Z', save: () => {} }
  await expect(client.mirror({ store }).next()).rejects.toThrow('by this computer')
  expect(requests).toEqual([])
})

describe.each(clients)('the rate limit, in $language', client => {
  const clientOf = creator(client)

  it('is respected: if nothing remains, the next request waits until the limit resets', async () => {
    const reset = String(startsAt / 1000 + 23)
    const none = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset }
    const { client, sleeps } = clientOf([ok(stats, none), ok()])
    await client.stats()
    await client.stats()
    expect(sleeps).toEqual([23_000])
  })

  it('is read as a delay if possible, and never waited for longer than its window', async () => {
    const delayed = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1', ratelimit: '"default";r=0;t=9' }
    const farAway = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9999999999' }
    const { client, sleeps } = clientOf([ok(stats, delayed), ok(stats, farAway), ok()])
    for (let request = 0; request < 3; request++) await client.stats()
    expect(sleeps).toEqual([9000, 61_000])
  })
})

describe.each(clients)('the cache period, in $language', client => {
  const clientOf = creator(client)

  it('is respected: the same request is not sent again within it, and is conditional after it', async () => {
    const same = () => new Response(null, { status: 304, headers: { ...fresh, age: '0' } })
    const { client, requests, pass } = clientOf([ok(stats, fresh), same, same])
    // First 40 s of the minute are left, then the whole minute.
    for (const [wait, asked] of [
      [0, 1],
      [39_000, 1],
      [2000, 2],
      [59_000, 2],
      // The clock was set back.
      [-3_600_000, 3],
    ] as const) {
      pass(wait)
      await expect(client.stats()).resolves.toEqual(stats.data)
      expect(requests).toHaveLength(asked)
    }
    expect(requests.map(({ headers }) => headers.get('if-none-match'))).toEqual([null, 'W/"a"', 'W/"a"'])
  })

  it('gives each caller a separate body', async () => {
    const { client } = clientOf([ok(stats, fresh)])
    const first = await client.stats()
    first.currency = 'EUR'
    expect((await client.stats()).currency).toBe('USD')
  })
})

it('a newer answer stays kept, also if a request from before it is answered later', async () => {
  const late = Promise.withResolvers<Response>()
  const newer = { data: { currency: 'EUR' } }
  const { client } = clientOf([() => late.promise, ok(newer, fresh)])
  const first = client.stats()
  await client.stats()
  late.resolve(ok(stats, fresh)())
  await expect(first).resolves.toEqual(stats.data)
  await expect(client.stats()).resolves.toEqual(newer.data)
})
