/** Each lookup counts once, as a hit or as a miss. */
import { beforeEach, expect, test } from 'vitest'
import { countedCache } from '../../../../services/query/cache/counted-cache.ts'
import type { CacheEntry, ResponseCache } from '../../../../services/query/cache/response-cache.ts'
import { createMemoryResponseCache } from '../../../../services/query/cache/response-cache-memory.ts'

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
  cache = countedCache(createMemoryResponseCache({ bytesMax: 1e6, now: () => 0 }), isHit => {
    if (isHit) counts.hits++
    else counts.misses++
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
