/** Caches over one Redis, as in several processes: each has its own connection and memory. */
import { createCache } from '../../../services/query/cache/cache.ts'
import { type CacheEntry, responses } from '../../../services/query/cache/response-cache.ts'
import { createSharedValues, type SharedValuesSettings } from '../../../services/query/cache/shared-values.ts'
import { connectTo, isUpWithin, newPrefix, type TestRedis } from './redis.ts'

export type TestCache = Awaited<ReturnType<typeof openCache>>

/** What a cache over Redis needs, besides its kind. */
type RedisCacheSettings = Omit<SharedValuesSettings<never>, 'mayStore'> & { bytesMax: number }

export type TestCacheSettings = Partial<
  Pick<RedisCacheSettings, 'keyPrefix' | 'bytesMax' | 'valueBytesMax' | 'lockMs' | 'now'>
> & { deadlineMs?: number }

/** The settings of a cache over Redis. Their connection is up. */
export async function redisCacheSettings(
  redis: Pick<TestRedis, 'url'>,
  { deadlineMs = 5000, ...settings }: TestCacheSettings = {},
): Promise<RedisCacheSettings> {
  const connection = connectTo(redis, { deadlineMs })
  if (!(await isUpWithin(connection, 10_000))) throw new Error('Redis did not come up')
  return {
    connection,
    keyPrefix: newPrefix(),
    bytesMax: 16 * 1024 * 1024,
    valueBytesMax: 1024 * 1024,
    now: Date.now,
    ...settings,
  }
}

export async function openCache(redis: Pick<TestRedis, 'url'>, settings?: TestCacheSettings) {
  const opened = await redisCacheSettings(redis, settings)
  const { connection, keyPrefix, now } = opened
  const cache = createCache(responses, { ...opened, shared: createSharedValues(responses, opened) })
  return { cache, connection, keyPrefix, now }
}

/** An entry with this body, created now by this clock. */
export function entryOf(body: string, now: () => number, ttlMs = 60_000): CacheEntry {
  const createdAt = now()
  const rest = { etag: `W/"${body.slice(0, 8)}"`, asOf: null, snapshotId: null, link: null }
  return { body: Buffer.from(body), ...rest, createdAt, expiresAt: createdAt + ttlMs }
}
