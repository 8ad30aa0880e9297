/** The response cache in memory, for a service that runs as a single process. */
import { createExpiringCache } from './expiring-cache.ts'
import type { CacheEntry, ResponseCache } from './response-cache.ts'

/** Creates an empty cache of at most `bytesMax`. `now` is in Unix milliseconds. */
export function createMemoryResponseCache({
  bytesMax,
  now,
}: {
  bytesMax: number
  now: () => number
}): ResponseCache {
  return createExpiringCache<CacheEntry>({
    bytesMax,
    bytesOf: ({ body, etag, asOf, snapshotId, link }) =>
      body.length + 2 * (etag.length + (asOf?.length ?? 0) + (snapshotId?.length ?? 0) + (link?.length ?? 0)),
    expiresAt: entry => entry.expiresAt,
    now,
  })
}
