/** The promises in services/query/cache/cache.ts, with Redis and without. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CacheEntry, ResponseCache } from '../../../../services/query/cache/response-cache.ts'

/** An empty cache with a limit of 64 KiB, and a way to advance its clock. */
export interface ResponseCacheHarness {
  cache: ResponseCache
  /** The cache's own clock, in Unix milliseconds. */
  now(): Promise<number>
  /** Resolves when at least this time has passed on the cache's clock. */
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

export const bytesMax = 64 * 1024

export function describeResponseCache(name: string, open: () => Promise<ResponseCacheHarness>): void {
  describe(`response cache: ${name}`, () => {
    let harness: ResponseCacheHarness
    let loads: string[]
    beforeEach(async () => {
      harness = await open()
      loads = []
    })
    afterEach(() => harness.close())

    const entry = async (body: string, ttlMs = 60_000): Promise<CacheEntry> => {
      const createdAt = await harness.now()
      const rest = {
        etag: `W/"${body.slice(0, 8)}"`,
        asOf: '2026-01-01T00:00:00.000Z',
        snapshotId: 'a snapshot',
        link: '</x>; rel="next"',
      }
      return { body: Buffer.from(body), ...rest, createdAt, expiresAt: createdAt + ttlMs }
    }
    const load = (body: string, ttlMs?: number) => async () => {
      loads.push(body)
      return entry(body, ttlMs)
    }

    it('returns the loaded entry byte for byte, with all its fields', async () => {
      const bytes = Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80, 0x0a])
      const loaded = { ...(await entry('x')), body: bytes, asOf: null, link: null }
      const first = await harness.cache.get('key', async () => loaded)
      const second = await harness.cache.get('key', load('other'))
      for (const got of [first, second]) {
        expect(Buffer.compare(got.body, bytes)).toBe(0)
        const { etag, asOf, snapshotId, link, createdAt, expiresAt } = loaded
        expect(got).toMatchObject({ etag, asOf, snapshotId, link })
        // A shared cache may round the time left of an entry, but only down.
        expect(got.createdAt).toBeLessThanOrEqual(createdAt)
        expect(got.expiresAt).toBeLessThanOrEqual(expiresAt)
        expect(got.expiresAt).toBeGreaterThan(expiresAt - 500)
      }
      expect(loads).toEqual([])
    })

    it('loads once for all callers while the load runs', async () => {
      let release = () => {}
      const loading = new Promise<void>(resolve => {
        release = resolve
      })
      const waiting = Array.from({ length: 20 }, () =>
        harness.cache.get('key', async () => {
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
      await harness.cache.get('key', load('first', 300))
      await harness.advance(300)
      const got = await harness.cache.get('key', load('second', 300))
      expect(got.body.toString()).toBe('second')
    })

    it('returns an entry that expired during its load to the waiting callers, and does not keep it', async () => {
      const late = await harness.cache.get('key', load('late', 0))
      expect(late.body.toString()).toBe('late')
      expect((await harness.cache.get('key', load('next'))).body.toString()).toBe('next')
    })

    it('gives a failure to all waiting callers, and loads again for the next one', async () => {
      let calls = 0
      const failing = async (): Promise<CacheEntry> => {
        calls++
        throw new Error('the tables are unavailable')
      }
      const waiting = await Promise.allSettled([1, 2, 3].map(() => harness.cache.get('key', failing)))
      expect(waiting.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
      expect(calls).toBe(1)
      expect((await harness.cache.get('key', load('again'))).body.toString()).toBe('again')
    })

    it('returns an entry that does not fit into the cache', async () => {
      const body = 'x'.repeat(2 * bytesMax)
      expect((await harness.cache.get('big', load(body))).body.length).toBe(body.length)
    })
  })
}
