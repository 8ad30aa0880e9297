/** What holds for the whole API: where it stands, what a key needs, and the names that everyone spells the same. */

/** The path under which this version of the API stands. */
export const basePath = '/api/v1'

/** The scope that a key needs to read anything. */
export const readScope = 'read:public'

/** The methods that are supported, as `Allow` and `Access-Control-Allow-Methods` list them. */
export const methods = 'GET, OPTIONS'

/** The request headers that a page of another origin may send. */
export const requestHeaders = 'X-API-Key, X-API-Secret, Authorization, If-None-Match, Content-Type'

/** The response headers that a page of another origin may read. */
export const exposedHeaders =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, X-Data-As-Of, ETag, ' +
  'Link, Age, X-Request-Id, Retry-After'
