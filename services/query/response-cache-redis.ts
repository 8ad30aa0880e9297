/** The response cache that all processes share through Redis. See `createRedisSharedCache` for what it promises. */
import { z } from 'zod'
import type { RedisConnection } from '../shared/redis.ts'
import { framed, unframed } from './framed-bytes.ts'
import type { CacheEntry, ResponseCache } from './response-cache.ts'
import { createMemoryResponseCache } from './response-cache-memory.ts'
import { type Codec, createRedisSharedCache } from './shared-cache-redis.ts'

export interface RedisCacheDependencies {
  connection: RedisConnection
  /** Stands before every key: processes that share it share their answers. */
  keyPrefix: string
  /** Bound on what is kept in this process. */
  bytesMax: number
  /** Bound on one value in Redis; a larger one stays in this process. */
  valueBytesMax: number
  /** Unix milliseconds. */
  now: () => number
  /** A word that nobody else has. */
  newToken: () => string
  /** How long a process may load alone. Default 3000. */
  lockMs?: number
}

// Another form of what is stored is another place to store it, while processes of two versions run.
const form = 'response:1:'

/** Makes a cache over what Redis holds already. */
export function createRedisResponseCache(dependencies: RedisCacheDependencies): ResponseCache {
  return createRedisSharedCache<CacheEntry>({
    ...dependencies,
    keyPrefix: dependencies.keyPrefix + form,
    codec: cacheEntryCodec,
    own: createMemoryResponseCache(dependencies),
  })
}

const headerSchema = z.object({ etag: z.string(), asOf: z.string().nullable(), link: z.string().nullable() })

const cacheEntryCodec: Codec<CacheEntry> = {
  encode: async ({ body, etag, asOf, link }) => framed({ etag, asOf, link }, body),

  async decode(bytes, lifetime) {
    const { header, body } = unframed(bytes)
    return { body, ...headerSchema.parse(header), ...lifetime }
  },
}
