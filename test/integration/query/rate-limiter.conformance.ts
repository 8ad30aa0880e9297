/** The promises at the head of services/query/rate-limiter.ts, for every implementation. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RateDecision, RateLimiter, RateLimiterSettings } from '../../../services/query/rate-limiter.ts'

/** A limiter without hits, and the means to let its clock move on. */
export interface RateLimiterHarness {
  limiter: RateLimiter
  /** Unix milliseconds of the limiter's own clock. */
  now(): Promise<number>
  /** Returns when at least that much time has passed on the limiter's clock. */
  advance(ms: number): Promise<void>
  /** How late, beyond the rounding to seconds, the limiter may name the second at which it admits again. Default 0. */
  resetLateMsMax?: number
  close(): Promise<void>
}

const settings: RateLimiterSettings = { limit: 5, windowMs: 2000 }

export function describeRateLimiter(
  name: string,
  open: (settings: RateLimiterSettings) => Promise<RateLimiterHarness>,
): void {
  describe(`rate limiter: ${name}`, () => {
    let harness: RateLimiterHarness
    beforeEach(async () => {
      harness = await open(settings)
    })
    afterEach(() => harness.close())

    const hits = (count: number, bucket = 'a') => times(count, () => harness.limiter.hit(bucket))

    it('admits exactly the limit of simultaneous hits', async () => {
      const decisions = await Promise.all(Array.from({ length: 50 }, () => harness.limiter.hit('a')))
      expect(decisions.filter(decision => decision.allowed)).toHaveLength(settings.limit)
    })

    it('counts down what remains, and names its limit on every decision', async () => {
      const decisions = await hits(7)
      expect(decisions.map(decision => decision.remaining)).toEqual([4, 3, 2, 1, 0, 0, 0])
      expect(decisions.map(decision => decision.allowed)).toEqual([
        true,
        true,
        true,
        true,
        true,
        false,
        false,
      ])
      expect(decisions.every(decision => decision.limit === settings.limit)).toBe(true)
    })

    it('never admits more than the limit across the boundary of two fixed windows', async () => {
      await harness.advance(settings.windowMs - ((await harness.now()) % settings.windowMs) - 300)
      await hits(settings.limit)
      await harness.advance(600)
      expect(allowedOf(await hits(settings.limit))).toBe(0)
    })

    it('gives places back one by one, as the hits that took them leave the window', async () => {
      await hits(2)
      await harness.advance(settings.windowMs / 2)
      await hits(3)
      await harness.advance(settings.windowMs / 2 + 50)
      expect(allowedOf(await hits(5))).toBe(2)
    })

    it('admits a hit at the second that it named, and not at once', async () => {
      await hits(settings.limit)
      const denied = await harness.limiter.hit('a')
      expect(denied.allowed).toBe(false)
      expect(denied.resetAt * 1000).toBeGreaterThan(await harness.now())
      const lateMsMax = 1000 + (harness.resetLateMsMax ?? 0)
      expect(denied.resetAt * 1000).toBeLessThanOrEqual((await harness.now()) + settings.windowMs + lateMsMax)
      await harness.advance(denied.resetAt * 1000 - (await harness.now()))
      expect((await harness.limiter.hit('a')).allowed).toBe(true)
    })

    it('names the present second while places remain', async () => {
      const before = Math.floor((await harness.now()) / 1000)
      const { resetAt } = await harness.limiter.hit('a')
      expect(resetAt).toBeGreaterThanOrEqual(before)
      expect(resetAt * 1000).toBeLessThanOrEqual(await harness.now())
    })

    it('does not count denied hits: who keeps knocking is let in as soon as the others', async () => {
      await hits(settings.limit)
      await harness.advance(settings.windowMs / 2)
      await hits(20)
      await harness.advance(settings.windowMs / 2 + 50)
      expect(allowedOf(await hits(5))).toBe(5)
    })

    it('takes nothing for a peek, which says what a hit would find', async () => {
      const before = await times(10, () => harness.limiter.peek('a'))
      expect(before.every(({ allowed, remaining }) => allowed && remaining === settings.limit)).toBe(true)
      await hits(settings.limit)
      const peeked = await harness.limiter.peek('a')
      expect(peeked).toEqual(await harness.limiter.hit('a'))
      expect(peeked).toMatchObject({ allowed: false, remaining: 0, limit: settings.limit })
    })

    it('keeps buckets apart', async () => {
      await hits(settings.limit, 'a')
      expect(allowedOf(await hits(settings.limit, 'b'))).toBe(settings.limit)
    })

    it('says what it was made with', () => {
      expect(harness.limiter.settings).toEqual(settings)
    })
  })
}

function allowedOf(decisions: readonly RateDecision[]): number {
  return decisions.filter(decision => decision.allowed).length
}

async function times<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let done = 0; done < count; done++) results.push(await work())
  return results
}
