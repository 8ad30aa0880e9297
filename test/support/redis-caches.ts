/** Caches over one Redis, as those of several processes would be: each with a connection and a memory of its own. */
import { randomUUID } from 'node:crypto'
import type { CacheEntry, ResponseCache } from '../../services/query/response-cache.ts'
import {
  createRedisResponseCache,
  type RedisCacheDependencies,
} from '../../services/query/response-cache-redis.ts'
import type { RedisConnection } from '../../services/shared/redis.ts'
import { connectTo, newPrefix, type TestRedis } from './redis.ts'

export interface TestCache {
  cache: ResponseCache
  connection: RedisConnection
  /** Unix milliseconds of this process's clock. */
  now(): number
}

export type TestCacheSettings = Partial<
  Pick<RedisCacheDependencies, 'keyPrefix' | 'bytesMax' | 'valueBytesMax' | 'lockMs' | 'now'>
> & { deadlineMs?: number }

/** What a cache over Redis is made with, and its connection, which is up. */
export async function redisCacheDependencies(
  redis: Pick<TestRedis, 'url'>,
  { deadlineMs = 5000, ...settings }: TestCacheSettings = {},
): Promise<RedisCacheDependencies> {
  const connection = connectTo(redis, { deadlineMs })
  if (!(await connection.whenUp(10_000))) throw new Error('Redis is not there')
  return {
    connection,
    keyPrefix: newPrefix(),
    bytesMax: 16 * 1024 * 1024,
    valueBytesMax: 1024 * 1024,
    now: Date.now,
    newToken: randomUUID,
    ...settings,
  }
}

export async function openCache(
  redis: Pick<TestRedis, 'url'>,
  settings?: TestCacheSettings,
): Promise<TestCache> {
  const dependencies = await redisCacheDependencies(redis, settings)
  const { connection, now } = dependencies
  return { cache: createRedisResponseCache(dependencies), connection, now }
}

/** An entry with this body, made now by that clock. */
export function entryOf(body: string, now: () => number, ttlMs = 60_000): CacheEntry {
  const createdAt = now()
  const rest = { etag: `W/"${body.slice(0, 8)}"`, asOf: null, link: null }
  return { body: Buffer.from(body), ...rest, createdAt, expiresAt: createdAt + ttlMs }
}
