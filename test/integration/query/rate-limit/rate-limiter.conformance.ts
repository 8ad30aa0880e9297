/** The promises in services/query/rate-limit/rate-limiter.ts, for every implementation. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type {
  RateDecision,
  RateLimiter,
  RateLimiterSettings,
} from '../../../../services/query/rate-limit/rate-limiter.ts'

/** A limiter without hits, and a way to advance its clock. */
export interface RateLimiterHarness {
  limiter: RateLimiter
  /** The limiter's own clock, in Unix milliseconds. */
  now(): Promise<number>
  /** Resolves when at least this time has passed on the limiter's clock. */
  advance(ms: number): Promise<void>
  /** By how much the delay may be too long, beyond the rounding to milliseconds. Default 0. */
  lateMsMax?: number
  close(): Promise<void>
}

const settings: RateLimiterSettings = { limit: 5, windowMs: 2000 }

/**
 * Plays this with other buckets, until it took less than a window of the limiter's clock: otherwise hits have left the window, and
 * its decisions say nothing. `before` may take any time.
 */
export async function withinWindow<T>(
  now: () => Promise<number>,
  windowMs: number,
  play: (bucket: string) => Promise<T>,
  before = async (_bucket: string) => {},
): Promise<T> {
  for (let round = 1; round <= 20; round++) {
    const bucket = `bucket ${round}`
    await before(bucket)
    const from = await now()
    const played = await play(bucket)
    if ((await now()) - from < windowMs) return played
  }
  throw new Error('nothing was played within a window: the machine is too busy')
}

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
    const inTime = <T>(play: (bucket: string) => Promise<T>, before?: (bucket: string) => Promise<void>) =>
      withinWindow(harness.now, settings.windowMs, play, before)

    it('admits exactly the limit of simultaneous hits', async () => {
      const decisions = await Promise.all(Array.from({ length: 50 }, () => harness.limiter.hit('a')))
      expect(decisions.filter(decision => decision.allowed)).toHaveLength(settings.limit)
    })

    it('counts down what remains, and returns the limit, and a delay if none remain, with every decision', async () => {
      const decisions = await inTime(bucket => hits(7, bucket))
      expect(decisions.map(decision => decision.remaining)).toEqual([4, 3, 2, 1, 0, 0, 0])
      for (const [at, { allowed, limit, remaining, delayMs }] of decisions.entries()) {
        expect({ allowed, limit }).toEqual({ allowed: at < settings.limit, limit: settings.limit })
        expect(delayMs > 0).toBe(remaining === 0)
      }
    })

    it('makes room one by one, as hits leave the window', async () => {
      const early = async (bucket: string) => {
        await hits(2, bucket)
        await harness.advance(settings.windowMs / 2)
      }
      const late = async (bucket: string) => {
        await hits(3, bucket)
        await harness.advance(settings.windowMs / 2 + 50)
        return hits(5, bucket)
      }
      expect(allowedOf(await inTime(late, early))).toBe(2)
    })

    it('admits a hit after the delay, and not at once', async () => {
      const { bucket, denied } = await inTime(async bucket => {
        await hits(settings.limit, bucket)
        return { bucket, denied: await harness.limiter.hit(bucket) }
      })
      expect(denied.allowed).toBe(false)
      expect(denied.delayMs).toBeGreaterThan(0)
      expect(denied.delayMs).toBeLessThanOrEqual(settings.windowMs + 1 + (harness.lateMsMax ?? 0))
      await harness.advance(denied.delayMs)
      expect((await harness.limiter.hit(bucket)).allowed).toBe(true)
    })

    it('does not count denied hits: a client that keeps trying is admitted as early as others', async () => {
      const tried = await inTime(async bucket => {
        await hits(settings.limit, bucket)
        await harness.advance(settings.windowMs / 2)
        await hits(20, bucket)
        return bucket
      })
      await harness.advance(settings.windowMs / 2 + 50)
      expect(allowedOf(await hits(5, tried))).toBe(5)
    })
  })
}

function allowedOf(decisions: readonly RateDecision[]): number {
  return decisions.filter(decision => decision.allowed).length
}

async function times<T>(count: number, work: () => T | Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let done = 0; done < count; done++) results.push(await work())
  return results
}
