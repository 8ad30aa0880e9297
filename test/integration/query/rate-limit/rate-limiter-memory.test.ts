import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMemoryRateLimiter } from '../../../../services/query/rate-limit/rate-limiter.ts'
import { testClock } from '../../../support/query/app.ts'
import { describeRateLimiter } from './rate-limiter.conformance.ts'

describeRateLimiter('memory', async settings => {
  const clock = testClock()
  return {
    limiter: createMemoryRateLimiter(settings, { bucketsMax: 100, now: clock.now }),
    now: async () => clock.now(),
    advance: async ms => clock.advance(ms),
    close: async () => undefined,
  }
})

const settings = { limit: 3, windowMs: 100 }

describe('rate limiter in memory', () => {
  it('never admits more than the limit within any window, and all that it allows if there is room for every bucket', async () => {
    const steps = fc.array(
      fc.record({
        bucket: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
        wait: fc.oneof(fc.constant(0), fc.nat({ max: 60 })),
      }),
      { maxLength: 200, size: 'max' },
    )
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 8 }), async (hits, bucketsMax) => {
        const clock = testClock(0)
        const limiter = createMemoryRateLimiter(settings, { bucketsMax, now: clock.now })
        const admitted = new Map<string, number[]>()
        for (const { bucket, wait } of hits) {
          clock.advance(wait)
          const earlier = admitted.get(bucket) ?? []
          const recent = earlier.filter(at => at >= clock.now() - settings.windowMs)
          const hasRoom = recent.length < settings.limit
          const { allowed } = await limiter.hit(bucket)
          if (bucketsMax >= 6) expect(allowed).toBe(hasRoom)
          else if (allowed) expect(hasRoom).toBe(true)
          if (allowed) admitted.set(bucket, [...earlier, clock.now()])
        }
      }),
      { numRuns: 300 },
    )
  })

  it('lets new buckets share one window when all are in use, and frees empty buckets', async () => {
    const clock = testClock(0)
    const limiter = createMemoryRateLimiter(settings, { bucketsMax: 2, now: clock.now })
    await limiter.hit('a')
    await limiter.hit('b')
    const shared = [
      await limiter.hit('c'),
      await limiter.hit('d'),
      await limiter.hit('c'),
      await limiter.hit('e'),
    ]
    expect(shared.map(({ allowed }) => allowed)).toEqual([true, true, true, false])
    expect((await limiter.hit('a')).remaining).toBe(1)
    clock.advance(101)
    expect(await limiter.hit('c')).toMatchObject({ allowed: true, remaining: 2 })
    expect(await limiter.hit('f')).toMatchObject({ allowed: true, remaining: 2 })
  })
})
