/** The rate limiter in memory, for a service that is one process. What it holds is bounded by `bucketsMax`. */
import { createHitWindows, decisionOf } from './hit-windows.ts'
import type { RateLimiter, RateLimiterSettings } from './rate-limiter.ts'

/**
 * Makes a limiter without hits. `now` is in Unix milliseconds and must not run backwards, which would hold buckets
 * closed until it has caught up.
 */
export function createMemoryRateLimiter(
  settings: RateLimiterSettings,
  { bucketsMax, now }: { bucketsMax: number; now: () => number },
): RateLimiter {
  const windows = createHitWindows(settings, bucketsMax)
  return {
    settings,

    async hit(bucket) {
      const time = now()
      return decisionOf(settings, windows.take(bucket, time), time)
    },

    async peek(bucket) {
      const time = now()
      return decisionOf(settings, windows.look(bucket, time), time)
    },
  }
}
