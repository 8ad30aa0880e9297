/**
 * The response cache port: finished answers as bytes, until they expire.
 *
 * Promises that every implementation keeps (test/integration/query/response-cache.conformance.ts):
 * - an entry is never returned at or after its `expiresAt`, except to those who waited for that very load;
 * - while one load of a key runs, every other caller of that key in this process waits for it instead of loading;
 * - a failed load is not kept: each of its waiters gets the error, and the next caller loads again;
 * - what the process keeps is bounded in bytes; an entry that does not fit is returned and not kept there.
 */

/** One finished answer. Times are Unix milliseconds. */
export interface CacheEntry {
  /** The body as it is sent. */
  body: Buffer
  /** The weak entity tag, quotes and `W/` included. */
  etag: string
  /** The watermark of the data (`X-Data-As-Of`), ISO 8601; null where the resource has none. */
  asOf: string | null
  /** The `Link` header; null where there is none. */
  link: string | null
  createdAt: number
  expiresAt: number
}

export interface ResponseCache {
  /** The entry of the key, from the cache or else from `load`. Rejects with the error of `load`. */
  get(key: string, load: () => Promise<CacheEntry>): Promise<CacheEntry>
}
