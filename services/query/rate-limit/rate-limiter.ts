/**
 * The rate limiter port: a sliding window per bucket. The limits are settings: runtime/config.ts.
 *
 * Promises that every implementation keeps (test/integration/query/rate-limit/rate-limiter.conformance.ts):
 * - At most `limit` hits of one bucket are admitted within any period of `windowMs`.
 * - A denied hit does not count.
 * - A hit at the Unix second `resetAt` is admitted, unless other hits have used the room first.
 * - Buckets are independent, except when memory is short: then a bucket may admit fewer hits, but never more.
 *
 * An implementation in memory decides at once, and only one that asks another process returns a promise.
 */
import type { MaybePromise } from '../maybe-promise.ts'

export interface RateLimiterSettings {
  /** Hits admitted within one window. */
  limit: number
  windowMs: number
}

export interface RateDecision {
  allowed: boolean
  limit: number
  /** Hits that would be admitted now, after this one. */
  remaining: number
  /** The Unix second at which a hit would be admitted; the present second if some remain. */
  resetAt: number
}

export interface RateLimiter {
  readonly settings: RateLimiterSettings
  /** Admits and counts a hit if the window of the bucket has room. */
  hit(bucket: string): MaybePromise<RateDecision>
  /** The same as `hit`. Only an implementation that decides at once has it. */
  hitNow?(bucket: string): RateDecision
}

/** The two limiters of the query service. They are separate, so that a flood of addresses cannot push out a key. */
export interface RateLimiters {
  /** One bucket per API key, for requests with valid credentials. */
  keys: RateLimiter
  /** One bucket per client address, for all other requests. */
  addresses: RateLimiter
}
