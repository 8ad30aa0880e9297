/** The limiter over a working Redis: exact across processes, by Redis's clock. And what it promises while Redis is away. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RateDecision, RateLimiterSettings } from '../../../../services/query/rate-limit/rate-limiter.ts'
import { createRedisRateLimiter } from '../../../../services/query/rate-limit/rate-limiter-redis.ts'
import { testClock } from '../../../support/query/app.ts'
import { connectTo } from '../../../support/servers/redis.ts'
import { openLimiters, redisNow, untilRedisSays } from '../../../support/servers/redis-limiters.ts'
import { redisService } from '../../../support/services/redis.ts'
import { useService } from '../../../support/services/test-service.ts'
import { describeRateLimiter, withinWindow } from './rate-limiter.conformance.ts'

const redis = useService(redisService)

const conformanceDeadlineMs = 500

describeRateLimiter('Redis', async settings => {
  const { limiters, close } = await openLimiters(redis(), 1, settings, { deadlineMs: conformanceDeadlineMs })
  const [limiter] = limiters
  return {
    limiter,
    now: () => redisNow(redis()),
    advance: async ms => untilRedisSays(redis(), (await redisNow(redis())) + ms),
    lateMsMax: conformanceDeadlineMs,
    close,
  }
})

describeRateLimiter('Redis, away', async settings => {
  const clock = testClock()
  const connection = connectTo({ url: 'redis://127.0.0.1:1' }, { deadlineMs: conformanceDeadlineMs })
  const parts = { connection, keyPrefix: '', instance: 'alone', bucketsMax: 1000, now: clock.now }
  return {
    limiter: createRedisRateLimiter(settings, parts),
    now: async () => clock.now(),
    advance: async ms => clock.advance(ms),
    lateMsMax: conformanceDeadlineMs,
    close: async () => connection.close(),
  }
})

async function openShared<Count extends 1 | 2>(count: Count, settings: RateLimiterSettings) {
  const opened = await openLimiters(redis(), count, settings)
  onTestFinished(opened.close)
  return opened
}

describe('the limiter of several processes over one Redis', () => {
  it('never admits more than the limit within any window of running traffic, and uses all of it', async () => {
    const settings = { limit: 10, windowMs: 300 }
    const { limiters } = await openShared(2, settings)
    const now = async () => performance.now()
    // Four windows, and room for the pauses between them.
    await withinWindow(now, 2_000, async bucket => {
      const admitted: { from: number; to: number }[] = []
      const end = performance.now() + 2_000
      const knock = async (limiter: (typeof limiters)[number]) => {
        while (admitted.length <= 3 * settings.limit && performance.now() < end) {
          const from = performance.now()
          if ((await limiter.hit(bucket)).allowed) admitted.push({ from, to: performance.now() })
        }
      }
      await Promise.all([...limiters, ...limiters].map(knock))
      admitted.sort((a, b) => a.from - b.from)
      // The first and the last of eleven consecutive hits are at least a window apart.
      for (const [index, first] of admitted.entries()) {
        const last = admitted[index + settings.limit]
        if (last) expect(last.to - first.from).toBeGreaterThan(settings.windowMs)
      }
    })
  })

  it('removes from the local window the hits that Redis refused', async () => {
    const settings = { limit: 5, windowMs: 2000 }
    const { limiters } = await openShared(2, settings)
    const [a, b] = limiters
    const now = () => redisNow(redis())
    const { bucket, fullUntil, tried } = await withinWindow(now, settings.windowMs, async bucket => {
      await Promise.all(Array.from({ length: 5 }, () => a.hit(bucket)))
      const fullUntil = (await now()) + settings.windowMs
      await untilRedisSays(redis(), fullUntil - settings.windowMs / 2)
      const tried = await Promise.all(Array.from({ length: 20 }, () => b.hit(bucket)))
      return { bucket, fullUntil, tried }
    })
    expect(allowedOf(tried)).toBe(0)
    await untilRedisSays(redis(), fullUntil + 1)
    expect(allowedOf(await Promise.all(Array.from({ length: 20 }, () => b.hit(bucket))))).toBe(5)
  })

  it('counts hits for one window after the clock of Redis was set back, not until it has caught up', async () => {
    const settings = { limit: 2, windowMs: 300 }
    const { limiters, keyOf } = await openShared(1, settings)
    const [limiter] = limiters
    const tomorrow = (await redisNow(redis())) + 86_400_000
    await redis().client.zadd(keyOf('a'), tomorrow, 'hit 1', tomorrow, 'hit 2')
    expect(await limiter.hit('a')).toMatchObject({ allowed: false })
    await untilRedisSays(redis(), (await redisNow(redis())) + settings.windowMs + 1)
    expect(await limiter.hit('a')).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('stores at most the limit per bucket, and not the name of the bucket', async () => {
    const settings = { limit: 3, windowMs: 5000 }
    const { limiters, keyOf, keyPrefix } = await openShared(2, settings)
    for (const limiter of [...limiters, ...limiters, ...limiters]) await limiter.hit('pv_live_0123456789')
    expect(await redis().client.zcard(keyOf('pv_live_0123456789'))).toBe(3)
    const stored = await redis().client.keys(`${keyPrefix}*`)
    expect(stored.toSorted()).toEqual([keyOf('pv_live_0123456789'), `${keyPrefix}windows`].toSorted())
    expect(keyOf('pv_live_0123456789')).not.toContain('0123456789')
  })

  it('removes windows in which no hit counts, whichever buckets are hit next', async () => {
    const settings = { limit: 20, windowMs: 200 }
    const { limiters, keyPrefix } = await openShared(2, settings)
    const [a, b] = limiters
    await Promise.all(Array.from({ length: 20 }, (_, n) => a.hit(`bucket ${n}`)))
    const stored = () => redis().client.keys(`${keyPrefix}*`)
    expect(await stored()).toHaveLength(21)
    await untilRedisSays(redis(), (await redisNow(redis())) + settings.windowMs + 1001)
    for (let hit = 0; hit < 10; hit++) await b.hit('another')
    // The window of this bucket, and the list of windows.
    expect(await stored()).toHaveLength(2)
  })
})

function allowedOf(decisions: readonly RateDecision[]): number {
  return decisions.filter(({ allowed }) => allowed).length
}
