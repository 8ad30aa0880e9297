/** The response cache that all processes share through Redis. See `createRedisSharedCache` for its promises. */
import { z } from 'zod'
import type { RedisConnection } from '../../shared/redis/connection.ts'
import { framed, unframed } from './framed-bytes.ts'
import type { CacheEntry, ResponseCache } from './response-cache.ts'
import { createMemoryResponseCache } from './response-cache-memory.ts'
import { type Codec, createRedisSharedCache } from './shared-cache-redis.ts'

export interface RedisCacheDependencies {
  connection: RedisConnection
  /** Prefix of every key. Processes with the same prefix share their responses. */
  keyPrefix: string
  /** Memory limit in this process. */
  bytesMax: number
  /** Size limit of one value in Redis. A larger value stays in this process. */
  valueBytesMax: number
  /** Unix milliseconds. */
  now: () => number
  /** Returns a token that is unique among all processes. */
  newToken: () => string
  /** How long a process holds the lock while it loads a value. Default 3000. */
  lockMs?: number
}

// Change this prefix when the stored format changes: processes of two versions may run at the same time.
const keyPrefixOfFormat = 'response:2:'

/** Creates a cache over what Redis holds already. */
export function createRedisResponseCache(dependencies: RedisCacheDependencies): ResponseCache {
  return createRedisSharedCache<CacheEntry>({
    ...dependencies,
    keyPrefix: dependencies.keyPrefix + keyPrefixOfFormat,
    codec: cacheEntryCodec,
    local: createMemoryResponseCache(dependencies),
  })
}

const headerSchema = z.object({
  etag: z.string(),
  asOf: z.string().nullable(),
  snapshotId: z.string().nullable(),
  link: z.string().nullable(),
})

const cacheEntryCodec: Codec<CacheEntry> = {
  encode: async ({ body, etag, asOf, snapshotId, link }) => framed({ etag, asOf, snapshotId, link }, body),

  async decode(bytes, lifetime) {
    const { header, body } = unframed(bytes)
    return { body, ...headerSchema.parse(header), ...lifetime }
  },
}
