import type { CacheEntry } from './response-cache.ts'
import { weakTagOf } from './weak-tag.ts'

/** The finished response with this body, as bytes with their tag. */
export function entryOf(body: object, rest: Omit<CacheEntry, 'body' | 'etag'>): CacheEntry {
  const bytes = Buffer.from(JSON.stringify(body))
  return { body: bytes, etag: weakTagOf(bytes), ...rest }
}
