/** Each lookup counts once, as a hit or as a miss. After a purge nothing from before it is returned. */
import { beforeEach, expect, test } from 'vitest'
import { createCache } from '../../../../services/query/cache/cache.ts'
import {
  type CacheEntry,
  type ResponseCache,
  responses,
} from '../../../../services/query/cache/response-cache.ts'
import {
  bytesMax,
  describeResponseCache,
} from '../../../integration/query/cache/response-cache.conformance.ts'
import { testClock } from '../../../support/query-app.ts'

describeResponseCache('memory', async () => {
  const clock = testClock()
  return {
    cache: createCache(responses, { bytesMax, now: clock.now }),
    now: async () => clock.now(),
    advance: async ms => clock.advance(ms),
    close: async () => undefined,
  }
})

const entry: CacheEntry = {
  body: Buffer.from('{}'),
  etag: 'W/"1"',
  asOf: null,
  snapshotId: null,
  link: null,
  createdAt: 0,
  expiresAt: 1_000,
}
let cache: ResponseCache
let counts: { hits: number; misses: number }

beforeEach(() => {
  counts = { hits: 0, misses: 0 }
  cache = createCache(responses, {
    bytesMax: 1e6,
    now: () => 0,
    onLookup(isHit) {
      if (isHit) counts.hits++
      else counts.misses++
    },
  })
})

/** As the HTTP app asks. */
const ask = async (load: () => Promise<CacheEntry>) => cache.find('key') ?? (await cache.get('key', load))

test('the first request misses, and later ones hit', async () => {
  for (let i = 0; i < 3; i++) await ask(async () => entry)
  expect(counts).toEqual({ hits: 2, misses: 1 })
})

test('a request that waits for the load of another one hits', async () => {
  await Promise.all([ask(async () => entry), ask(async () => entry)])
  expect(counts).toEqual({ hits: 1, misses: 1 })
})

test('a load that fails is a miss, each time', async () => {
  const failing = () => ask(() => Promise.reject(new Error('away')))
  await expect(failing()).rejects.toThrow('away')
  await expect(failing()).rejects.toThrow('away')
  expect(counts).toEqual({ hits: 0, misses: 2 })
})

test('after a purge, neither what was kept nor what was loading is returned, from memory or from other processes', async () => {
  const shared = new Map<string, Promise<CacheEntry>>()
  const process = () =>
    createCache(responses, {
      bytesMax: 1e6,
      now: () => 0,
      shared(key, load) {
        const value = shared.get(key) ?? load()
        shared.set(key, value)
        return value
      },
    })
  const [a, b] = [process(), process()]
  const withTag = (etag: string) => ({ ...entry, etag })
  const { promise: before, resolve: end } = Promise.withResolvers<CacheEntry>()
  await a.get('kept', async () => withTag('before'))
  const waiting = a.get('loading', () => before)
  for (const one of [a, b]) one.forgetAll(1)
  end(withTag('before'))
  expect((await waiting).etag).toBe('before')
  for (const key of ['kept', 'loading']) {
    expect(a.find(key)).toBeUndefined()
    for (const one of [b, a]) expect((await one.get(key, async () => withTag('after'))).etag).toBe('after')
    expect(a.find(key)).toMatchObject({ etag: 'after' })
  }
})
