/** The response cache while Redis is killed, paused and restarted: callers notice only the additional loads. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CacheEntry } from '../../../../services/query/cache/response-cache.ts'
import { isUpWithin, newPrefix, type RedisProcess, redisProgram, startRedis } from '../../../support/redis.ts'
import { entryOf, openCache, type TestCache, type TestCacheSettings } from '../../../support/redis-caches.ts'
import { needs } from '../../../support/requirements.ts'

let redis: RedisProcess
let keyPrefix: string
const caches: TestCache[] = []

beforeEach(async context => {
  needs(context, redisProgram)
  redis = await startRedis()
  keyPrefix = newPrefix()
})
afterEach(async () => {
  for (const { connection } of caches.splice(0)) connection.close()
  await redis?.close()
})

async function open(settings: TestCacheSettings = {}): Promise<TestCache> {
  const opened = await openCache(redis, { keyPrefix, deadlineMs: 1000, ...settings })
  caches.push(opened)
  return opened
}

const never = () => Promise.reject(new Error('this should not have been loaded'))
const ask = async ({ cache, now }: TestCache, body: string, ttlMs?: number): Promise<string> =>
  (await cache.get('key', async () => entryOf(body, now, ttlMs))).body.toString()
const untilAway = ({ connection }: TestCache) => vi.waitUntil(() => !connection.isUp(), { timeout: 10_000 })

describe('the response cache without Redis', () => {
  it('works locally: it caches, and loads once for all callers', async () => {
    const a = await open()
    await redis.kill()
    await untilAway(a)
    let loads = 0
    const load = async (): Promise<CacheEntry> => {
      loads++
      await new Promise(resolve => setImmediate(resolve))
      return entryOf('own', a.now)
    }
    const answers = await Promise.all(Array.from({ length: 20 }, () => a.cache.get('key', load)))
    expect(answers.map(({ body }) => body.toString())).toEqual(Array(20).fill('own'))
    expect((await a.cache.get('key', never)).body.toString()).toBe('own')
    expect(loads).toBe(1)
  })

  it('still has what it shared before', async () => {
    const [a, b] = [await open(), await open()]
    expect(await ask(a, 'shared')).toBe('shared')
    expect(await ask(b, 'other')).toBe('shared')
    await redis.kill()
    await untilAway(b)
    expect((await b.cache.get('key', never)).body.toString()).toBe('shared')
  })

  it('loads after one deadline if Redis stops answering, and then at once', async () => {
    const a = await open()
    redis.pause()
    expect(await ask(a, 'first')).toBe('first')
    expect(a.connection.isUp()).toBe(false)
    expect((await a.cache.get('other', async () => entryOf('second', a.now))).body.toString()).toBe('second')
    redis.resume()
  })

  it('returns the loaded value if Redis fails during the load', async () => {
    const a = await open()
    const answer = a.cache.get('key', async () => {
      await redis.kill()
      return entryOf('loaded', a.now)
    })
    expect((await answer).body.toString()).toBe('loaded')
    expect((await a.cache.get('key', never)).body.toString()).toBe('loaded')
  })

  it('rejects with the error of the load, not of Redis', async () => {
    const a = await open()
    const failing = a.cache.get('key', async () => {
      await redis.kill()
      throw new Error('the tables are unavailable')
    })
    await expect(failing).rejects.toThrow('the tables are unavailable')
  })
})

describe('the response cache after Redis came back', () => {
  it('is shared again by itself, even after a restart of Redis', async () => {
    const [a, b] = [await open(), await open()]
    await redis.kill()
    for (const cache of [a, b]) await untilAway(cache)
    expect([await ask(a, 'of a', 500), await ask(b, 'of b', 500)]).toEqual(['of a', 'of b'])
    const ended = Date.now() + 500
    await redis.restart()
    for (const { connection } of [a, b]) expect(await isUpWithin(connection, 10_000)).toBe(true)
    await vi.waitUntil(() => Date.now() >= ended, 20_000)
    expect([await ask(a, 'of a, later'), await ask(b, 'of b, later')]).toEqual(['of a, later', 'of a, later'])
  })

  it('never returns an entry that Redis stored after its expiry', async () => {
    const a = await open()
    let ended = 0
    const answer = a.cache.get('key', async () => {
      redis.pause()
      const entry = entryOf('short', a.now, 400)
      ended = entry.expiresAt
      return entry
    })
    expect((await answer).body.toString()).toBe('short')
    await vi.waitUntil(() => Date.now() >= ended, 20_000)
    redis.resume()
    expect(await isUpWithin(a.connection, 10_000)).toBe(true)
    expect(await ask(await open(), 'next')).toBe('next')
  })
})
