/** The promises in services/query/cache/cache.ts, with Redis and without. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCache } from '../../../../services/query/cache/cache.ts'
import {
  type CacheEntry,
  type ResponseCache,
  responses,
} from '../../../../services/query/cache/response-cache.ts'
import { entryOf, openCache } from '../../../support/servers/redis-caches.ts'
import { redisService } from '../../../support/services/redis.ts'
import { useService } from '../../../support/services/test-service.ts'

const bytesMax = 64 * 1024
let aheadMs = 0
const now = () => Date.now() + aheadMs

describe('the response cache with Redis', () => {
  const redis = useService(redisService)
  provesItsPromises(async () => {
    const { cache, connection } = await openCache(redis(), { bytesMax, now })
    return { cache, close: () => connection.close() }
  }, 15_000)
})

describe('the response cache without Redis', () => {
  provesItsPromises(
    async () => ({ cache: createCache(responses, { bytesMax, now }), close: () => undefined }),
    0,
  )
})

/** `lateMsMax`: how much of an entry's lifetime the cache may lose. */
function provesItsPromises(
  open: () => Promise<{ cache: ResponseCache; close(): void }>,
  lateMsMax: number,
): void {
  let cache: ResponseCache
  let close: () => void
  let loads: string[]
  beforeEach(async () => {
    ;({ cache, close } = await open())
    loads = []
    aheadMs = 0
  })
  afterEach(() => close())

  const load = (body: string, ttlMs?: number) => async () => {
    loads.push(body)
    return entryOf(body, now, ttlMs)
  }

  it('returns the loaded entry byte for byte, with all its fields', async () => {
    const bytes = Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80, 0x0a])
    const loaded = { ...entryOf('x', Date.now), body: bytes, snapshotId: 'a snapshot' }
    const first = await cache.get('key', async () => loaded)
    const second = await cache.get('key', load('other'))
    for (const got of [first, second]) {
      expect(Buffer.compare(got.body, bytes)).toBe(0)
      const { etag, asOf, snapshotId, link, createdAt, expiresAt } = loaded
      expect(got).toMatchObject({ etag, asOf, snapshotId, link })
      // A shared cache may round the time left of an entry, but only down, the more the slower Redis answers.
      expect(got.createdAt).toBeLessThanOrEqual(createdAt)
      expect(got.expiresAt).toBeLessThanOrEqual(expiresAt)
      expect(got.expiresAt).toBeGreaterThanOrEqual(expiresAt - lateMsMax)
    }
    expect(loads).toEqual([])
  })

  it('loads once for all callers while the load runs', async () => {
    const { promise: loading, resolve: release } = Promise.withResolvers<void>()
    const waiting = Array.from({ length: 20 }, () =>
      cache.get('key', async () => {
        await loading
        return load('once')()
      }),
    )
    release()
    const bodies = (await Promise.all(waiting)).map(({ body }) => body.toString())
    expect(new Set(bodies)).toEqual(new Set(['once']))
    expect(loads).toEqual(['once'])
  })

  it('does not return an entry that has expired', async () => {
    const { expiresAt } = await cache.get('key', load('first', 300))
    await vi.waitUntil(() => Date.now() >= expiresAt, 20_000)
    const got = await cache.get('key', load('second', 300))
    expect(got.body.toString()).toBe('second')
  })

  it('keeps no entry for longer than its lifetime if the clock is set back', async () => {
    await cache.get('key', load('before', 60_000))
    aheadMs = -3_600_000
    const { expiresAt } = await cache.get('key', load('after', 60_000))
    expect(expiresAt).toBeLessThanOrEqual(now() + 60_000)
  })

  it('returns an entry that expired during its load to the waiting callers, and does not keep it', async () => {
    const late = await cache.get('key', load('late', 0))
    expect(late.body.toString()).toBe('late')
    expect((await cache.get('key', load('next'))).body.toString()).toBe('next')
  })

  it('gives a failure to all waiting callers, and loads again for the next one', async () => {
    let calls = 0
    const failing = async (): Promise<CacheEntry> => {
      calls++
      throw new Error('the tables are unavailable')
    }
    const waiting = await Promise.allSettled([1, 2, 3].map(() => cache.get('key', failing)))
    expect(waiting.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(calls).toBe(1)
    expect((await cache.get('key', load('again'))).body.toString()).toBe('again')
  })

  it('returns an entry that does not fit into the cache', async () => {
    const body = 'x'.repeat(2 * bytesMax)
    expect((await cache.get('big', load(body))).body.length).toBe(body.length)
  })
}
