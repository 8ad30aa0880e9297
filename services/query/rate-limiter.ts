/**
 * The rate limiter port: a sliding window per bucket.
 *
 * Promises that every implementation keeps (test/integration/query/rate-limiter.conformance.ts):
 * - no more than `limit` hits of one bucket are admitted within any stretch of `windowMs`;
 * - a denied hit and a peek use nothing up;
 * - a hit at the Unix second `resetAt` is admitted, when nobody else took the place first;
 * - buckets do not share anything but, under memory pressure, room: then a bucket may admit less, never more.
 */

export interface RateLimiterSettings {
  /** Hits admitted within one window. */
  limit: number
  windowMs: number
}

export interface RateDecision {
  allowed: boolean
  limit: number
  /** Hits that would be admitted at once after this one. */
  remaining: number
  /** The Unix second at which a hit would be admitted; the present one when some remain. */
  resetAt: number
}

export interface RateLimiter {
  readonly settings: RateLimiterSettings
  /** Asks for one place in the bucket's window and takes it when there is one. */
  hit(bucket: string): Promise<RateDecision>
  /** What `hit` would find, without taking a place: `allowed` says whether a hit would be admitted. */
  peek(bucket: string): Promise<RateDecision>
}

/** The two limiters of the query service. They are apart so that a flood of addresses cannot crowd out a key. */
export interface RateLimiters {
  /** Buckets are API keys, of requests with valid credentials. */
  keys: RateLimiter
  /** Buckets are client addresses, of all other requests. */
  addresses: RateLimiter
}
