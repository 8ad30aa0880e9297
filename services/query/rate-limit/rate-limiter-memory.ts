/** The rate limiter in memory, for a service that runs as a single process. `bucketsMax` bounds its memory. */
import type { RateDecision, RateLimiter, RateLimiterSettings } from './rate-limiter.ts'
import { createSlidingWindowLog, decisionOf } from './sliding-window-log.ts'

/**
 * Creates a limiter without hits. `now` is in Unix milliseconds and must not run backwards: full buckets would stay
 * full until it has caught up.
 */
export function createMemoryRateLimiter(
  settings: RateLimiterSettings,
  { bucketsMax, now }: { bucketsMax: number; now: () => number },
): Required<RateLimiter> {
  const log = createSlidingWindowLog(settings, bucketsMax)

  function hit(bucket: string): RateDecision {
    const time = now()
    return decisionOf(settings, log.take(bucket, time), time)
  }

  return {
    settings,
    hit,
    hitNow: hit,
  }
}
