/**
 * The response cache over Redis: what processes share, which process loads, and what happens when a process or Redis
 * fails.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { CacheEntry } from '../../../../services/query/cache/response-cache.ts'
import { needs } from '../../../support/runner/requirements.ts'
import { isUpWithin, newPrefix, redisProgram, startRedis } from '../../../support/servers/redis.ts'
import {
  entryOf,
  openCache,
  type TestCache,
  type TestCacheSettings,
} from '../../../support/servers/redis-caches.ts'
import { redisService } from '../../../support/services/redis.ts'
import { useService } from '../../../support/services/test-service.ts'

const redis = useService(redisService)

/** The caches of two processes that keep nothing locally. */
async function openTwo(settings: TestCacheSettings = {}, other: TestCacheSettings = {}) {
  const keyPrefix = newPrefix()
  const a = await openCache(redis(), { keyPrefix, ...settings })
  const b = await openCache(redis(), { keyPrefix, ...settings, ...other })
  onTestFinished(() => {
    for (const { connection } of [a, b]) connection.close()
  })
  return { keyPrefix, a, b }
}

/** A load that the test ends. */
function openLoad(load: () => CacheEntry) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let isRunning = false
  return {
    load: async () => {
      isRunning = true
      await promise
      return load()
    },
    untilRunning: () => vi.waitUntil(() => isRunning, { timeout: 20_000, interval: 2 }),
    isRunning: () => isRunning,
    end: resolve,
    fail: (error: Error) => reject(error),
  }
}

const never = () => Promise.reject(new Error('this should not have been loaded'))
const bodyOf = ({ body }: CacheEntry) => body.toString()
const open = async ({ cache, now }: TestCache, body: string, ttlMs?: number) =>
  bodyOf(await cache.get('key', async () => entryOf(body, now, ttlMs)))

async function untilPast(ms: number): Promise<void> {
  const until = Date.now() + ms
  while (Date.now() < until) await delay(until - Date.now())
}

describe('the response cache of several processes over one Redis', () => {
  it('lets the next process load after a failed load, and rejects only for the callers of that load', async () => {
    const { keyPrefix, a, b } = await openTwo()
    const load = openLoad(() => entryOf('never', a.now))
    const first = a.cache.get('key', load.load)
    await load.untilRunning()
    const second = open(b, 'second')
    load.fail(new Error('the tables are unavailable'))
    await expect(first).rejects.toThrow('the tables are unavailable')
    expect(await second).toBe('second')
    expect(await open(a, 'third')).toBe('second')
    await expect(a.cache.get('another', never)).rejects.toThrow()
    // No lock is left.
    expect(await redis().client.keys(`${keyPrefix}*`)).toHaveLength(1)
  })

  it('loads again what has more than its lifetime left, because the clock of Redis was set back', async () => {
    const { keyPrefix, a, b } = await openTwo()
    await open(a, 'before')
    const [place = ''] = await redis().client.keys(`${keyPrefix}*`)
    await redis().client.pexpire(place, 3_600_000)
    expect(await open(b, 'after')).toBe('after')
    // All others use that one.
    expect(await redis().client.pttl(place)).toBeLessThan(600_000)
  })

  it('lets another process load when the lock of a slow process has expired, and both return the first stored value', async () => {
    const { a, b } = await openTwo({ lockMs: 100 })
    const slow = openLoad(() => entryOf('slow', a.now))
    const first = a.cache.get('key', slow.load)
    await slow.untilRunning()
    expect(await open(b, 'quick')).toBe('quick')
    slow.end()
    expect(bodyOf(await first)).toBe('quick')
    expect(await open(a, 'other')).toBe('quick')
  })

  it('makes no process wait longer than two lock periods, whichever process has the lock', async () => {
    const { keyPrefix, a, b } = await openTwo({ lockMs: 100 })
    const dead = openLoad(() => entryOf('dead', a.now))
    void a.cache.get('key', dead.load)
    await dead.untilRunning()
    const [place = ''] = await redis().client.keys(`${keyPrefix}*`)
    await redis().client.set(place, 'L of a process that never releases it')
    expect(await open(b, 'alive')).toBe('alive')
  })

  it('does not release a lock that another process has taken over', async () => {
    // The second one has its lock until its load ends, however slow the machine is.
    const { a, b } = await openTwo({ lockMs: 300 }, { lockMs: 60_000 })
    const failing = openLoad(() => entryOf('never', a.now))
    const running = openLoad(() => entryOf('stored', b.now))
    const first = a.cache.get('key', failing.load)
    await failing.untilRunning()
    const second = b.cache.get('key', running.load)
    await running.untilRunning()
    failing.fail(new Error('no'))
    await expect(first).rejects.toThrow('no')
    const third = openLoad(() => entryOf('third', a.now))
    const waiting = a.cache.get('key', third.load)
    running.end()
    expect(bodyOf(await second)).toBe('stored')
    expect(bodyOf(await waiting)).toBe('stored')
    expect(third.isRunning()).toBe(false)
  })

  it.each([-600_000, 600_000])(
    'expires an entry in time if the clock of another process is %i ms off',
    async offMs => {
      /** Shares another entry if the machine was so busy that this one had expired. */
      const share = async (round = 1) => {
        const { a, b } = await openTwo({}, { now: () => Date.now() + offMs })
        const loaded = entryOf('first', a.now, 2_500)
        const { expiresAt } = await a.cache.get('key', async () => loaded)
        await untilPast(100)
        const askedAt = Date.now()
        try {
          const got = await b.cache.get('key', never)
          return { a, b, loaded, got, leastExpiresAt: expiresAt - (Date.now() - askedAt) }
        } catch (error) {
          if (Date.now() < expiresAt || round === 20) throw error
          return share(round + 1)
        }
      }
      const { a, b, loaded, got, leastExpiresAt } = await share()
      // In the other clock, but with the same age and the same time left.
      expect(got.expiresAt - got.createdAt).toBe(2_500)
      expect(got.expiresAt - offMs).toBeGreaterThanOrEqual(leastExpiresAt - 5)
      expect(got.expiresAt - offMs).toBeLessThanOrEqual(loaded.expiresAt + 5)
      await vi.waitUntil(() => Date.now() >= loaded.expiresAt + 5, 20_000)
      expect(await open(b, 'second')).toBe('second')
      expect(await open(a, 'third')).toBe('second')
    },
  )

  it('keeps a value that is too large for Redis local, and makes no other process wait', async () => {
    const { keyPrefix, a, b } = await openTwo({ valueBytesMax: 1024 })
    expect(await open(a, 'a'.repeat(2048))).toBe('a'.repeat(2048))
    expect(await redis().client.keys(`${keyPrefix}*`)).toEqual([])
    expect(bodyOf(await a.cache.get('key', never))).toBe('a'.repeat(2048))
    expect(await open(b, 'b'.repeat(2048))).toBe('b'.repeat(2048))
  })

  it('treats an unreadable value as missing', async () => {
    const { keyPrefix, a, b } = await openTwo()
    await open(a, 'stored')
    const [place = ''] = await redis().client.keys(`${keyPrefix}*`)
    await redis().client.set(place, 'V of something else', 'KEEPTTL')
    expect(await open(b, 'own')).toBe('own')
  })

  it('bounds the end that a value takes over, if the clock of Redis is another one by now', async () => {
    const { keyPrefix, a } = await openTwo({ deadlineMs: 1_000 })
    const sharedUntil = Date.now() + 3_600_000
    await a.cache.get('key', async () => ({ ...entryOf('x', a.now, 2_000), sharedUntil }))
    const [place = ''] = await redis().client.keys(`${keyPrefix}*`)
    expect(await redis().client.pttl(place)).toBeLessThanOrEqual(3_000 + 1_000)
  })

  it('leaves nothing in Redis after its expiry, and never the key itself', async () => {
    const { keyPrefix, a } = await openTwo()
    await a.cache.get('project a-very-private-slug', async () => entryOf('x', a.now, 60_000))
    const keys = await redis().client.keys(`${keyPrefix}*`)
    expect(keys).toHaveLength(1)
    expect(keys[0]).not.toContain('slug')
    expect(await redis().client.pttl(keys[0] ?? '')).toBeGreaterThan(0)
    expect(await redis().client.pttl(keys[0] ?? '')).toBeLessThanOrEqual(60_000)
  })
})

it('the response cache never returns an entry that Redis stored after its expiry', async context => {
  needs(context, redisProgram)
  const own = await startRedis()
  onTestFinished(() => own.close())
  const cache = await openCache(own, { deadlineMs: 1000 })
  onTestFinished(() => cache.connection.close())
  let ended = 0
  const answer = cache.cache.get('key', async () => {
    own.pause()
    const entry = entryOf('short', cache.now, 400)
    ended = entry.expiresAt
    return entry
  })
  expect(bodyOf(await answer)).toBe('short')
  await vi.waitUntil(() => Date.now() >= ended, 20_000)
  own.resume()
  expect(await isUpWithin(cache.connection, 10_000)).toBe(true)
  const { keyPrefix } = cache
  const other = await openCache(own, { keyPrefix, deadlineMs: 1000 })
  onTestFinished(() => other.connection.close())
  expect(await open(other, 'next')).toBe('next')
})
