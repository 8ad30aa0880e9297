/** The response headers of the API, as values. Pure. Times are Unix milliseconds unless stated otherwise. */
import { exposedHeaders, methods, requestHeaders } from '../../../contracts/api/conventions.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { RateDecision } from '../rate-limit/rate-limiter.ts'

export type ResponseHeaders = Record<string, string>

export const jsonType = 'application/json; charset=utf-8'

/** The headers of every response. All names are in lower case, because they are looked up and merged by name. */
export function commonHeaders(requestId: string): ResponseHeaders {
  return {
    'x-request-id': requestId,
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposedHeaders,
    'x-content-type-options': 'nosniff',
  }
}

/** The headers of a preflight response. A browser may cache them for a day. */
export const preflightHeaders: ResponseHeaders = {
  'access-control-allow-methods': methods,
  'access-control-allow-headers': requestHeaders,
  'access-control-max-age': '86400',
  allow: methods,
}

/** The limiter's counters, under the API's own names and in the form of the IETF draft. */
export function rateLimitHeaders(
  { limit, remaining, resetAt }: RateDecision,
  { windowMs, now }: { windowMs: number; now: number },
): ResponseHeaders {
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(resetAt),
    'ratelimit-policy': `"default";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"default";r=${remaining};t=${secondsUntil(resetAt, now)}`,
  }
}

/** Whole seconds until that Unix second; at least 0. */
export function secondsUntil(unixSecond: number, now: number): number {
  return Math.max(0, unixSecond - Math.floor(now / 1000))
}

/**
 * The headers of a cached response besides its link, sent with 200 and with 304. They tell how long the response is valid from when it
 * was computed, and how long ago that was; HTTP caches subtract the two (RFC 9111). The age is rounded up, so that no
 * cache keeps the response too long.
 */
export function cacheHeaders(
  { etag, asOf, snapshotId, createdAt, expiresAt }: CacheEntry,
  now: number,
): ResponseHeaders {
  const headers: ResponseHeaders = {
    'cache-control': `private, max-age=${Math.max(0, Math.floor((expiresAt - createdAt) / 1000))}`,
    age: String(Math.max(0, Math.ceil((now - createdAt) / 1000))),
    etag,
    vary: 'Authorization, X-API-Key, X-API-Secret',
  }
  if (asOf !== null) headers['x-data-as-of'] = asOf
  if (snapshotId !== null) headers['x-snapshot-id'] = snapshotId
  return headers
}
