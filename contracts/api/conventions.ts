/** Values that hold for the whole API: its path, the scope of a key, and the names of methods and headers. */

/** The name of the API in its documents. */
export const apiTitle = 'Public campaign data'

/** The path of this version of the API. */
export const basePath = '/api/v1'

/** The path of the OpenAPI document. It needs no key. */
export const openApiPath = '/openapi.json'

const dayMs = 86_400_000

/** `days_remaining`: whole days until the end, rounded up; 0 if the end has passed or there is none. `now`: Unix ms. */
export function daysRemaining(endDate: string | null, now: number): number {
  return endDate === null ? 0 : Math.max(0, Math.ceil((Date.parse(endDate) - now) / dayMs))
}

/** The same in ClickHouse, of a column `end_date` and a parameter `now`. */
export const daysRemainingSql = `ifNull(toUInt32(greatest(0, intDivOrZero(toUnixTimestamp64Milli(end_date) - {now:Int64} + ${dayMs - 1}, ${dayMs}))), 0)`

/** The scope that a key needs for every read. */
export const readScope = 'read:public'

/** The supported methods, as in `Allow` and `Access-Control-Allow-Methods`. */
export const methods = 'GET, OPTIONS'

/** The request headers that a page from another origin may send. */
export const requestHeaders =
  'X-API-Key, X-API-Secret, Authorization, If-None-Match, If-Range, Range, Content-Type'

/** The response headers that a page from another origin may read. */
export const exposedHeaders =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, X-Data-As-Of, ' +
  'X-Snapshot-Id, X-Data-Digest, ETag, Link, Age, X-Request-Id, Retry-After, Deprecation, Sunset, Accept-Ranges, Content-Range'

/**
 * `Retry-After` of an `internal_error`, in seconds. The usual cause is that the tables do not answer, and a restarted
 * ClickHouse answers within this time. The client adds a growing pause of its own.
 */
export const internalErrorRetrySeconds = 2
