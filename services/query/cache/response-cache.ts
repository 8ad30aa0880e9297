/**
 * The response cache port: finished responses as bytes, until they expire.
 *
 * Promises that every implementation keeps (test/integration/query/cache/response-cache.conformance.ts):
 * - An entry is never returned at or after its `expiresAt`, except to callers that waited for that same load.
 * - While a load of a key runs, all other callers of that key in this process wait for it and do not load.
 * - A failed load is not kept: each waiting caller gets the error, and the next caller loads again.
 * - The memory in the process is bounded in bytes. An entry that does not fit is returned but not kept.
 */

/** One finished response. Times are Unix milliseconds. */
export interface CacheEntry {
  /** The body as it is sent. */
  body: Buffer
  /** The weak entity tag, with quotes and `W/`. */
  etag: string
  /** The watermark of the data (`X-Data-As-Of`), ISO 8601; null if the resource has none. */
  asOf: string | null
  /** The snapshot that the resource is a page of (`X-Snapshot-Id`); null if the resource is not a page. */
  snapshotId: string | null
  /** The `Link` header; null if there is none. */
  link: string | null
  createdAt: number
  expiresAt: number
}

export interface ResponseCache {
  /** Returns the entry of the key, from the cache or from `load`. Rejects with the error of `load`. */
  get(key: string, load: () => Promise<CacheEntry>): Promise<CacheEntry>
  /** Returns the entry or its running load, if this process has one. */
  find(key: string): CacheEntry | Promise<CacheEntry> | undefined
}
