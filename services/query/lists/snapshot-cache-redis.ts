/**
 * The cache of list snapshots that all processes share through Redis. So the pages of one query come from one snapshot,
 * whichever process answers them. See `createRedisSharedCache` for its promises. The exception is a key that reads many
 * long lists within a minute: those beyond its share stay in one process, and their pages show it by another `snapshotId`.
 */
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'
import { z } from 'zod'
import { framed, unframed } from '../cache/framed-bytes.ts'
import type { RedisCacheDependencies } from '../cache/response-cache-redis.ts'
import { type Codec, createRedisSharedCache } from '../cache/shared-cache-redis.ts'
import { createByteBudget } from './byte-budget.ts'
import { createMemorySnapshotCache, type Snapshot, type SnapshotCache } from './campaign-lists.ts'
import { joinedIdList } from './id-list.ts'

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)

// Change this prefix when the stored format changes: processes of two versions may run at the same time.
const keyPrefixOfFormat = 'snapshot:2:'
// Below this size compression saves no time.
const plainBytesMax = 16 * 1024
// The lowest quality, because a longer search finds little in ids.
const compression = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
// The size of the ids of about ten million campaigns. Nothing larger is ever stored.
const idsBytesMax = 512 * 1024 * 1024

// What one key may store in a minute, before compression: four lists of a million campaigns, or ten of 400,000. More
// lists stay in the process that made them. Otherwise one key could fill Redis, and joining its lists would keep the
// process busy.
const keyBytesMax = 96 * 1024 * 1024
const keyPeriodMs = 60_000

/** Creates a cache over what Redis holds already. */
export function createRedisSnapshotCache(
  dependencies: RedisCacheDependencies & { keyBytesMax?: number },
): SnapshotCache {
  const budget = createByteBudget({
    bytesMax: dependencies.keyBytesMax ?? keyBytesMax,
    periodMs: keyPeriodMs,
    now: dependencies.now,
  })
  return createRedisSharedCache<Snapshot>({
    ...dependencies,
    keyPrefix: dependencies.keyPrefix + keyPrefixOfFormat,
    codec: snapshotCodec,
    local: createMemorySnapshotCache(dependencies),
    mayStore: ({ ids }, owner) => budget.take(owner, ids.encodedBytes),
  })
}

const headerSchema = z.object({
  total: z.int(),
  asOf: z.string(),
  snapshotId: z.string(),
  isCompressed: z.boolean(),
})

const snapshotCodec: Codec<Snapshot> = {
  async encode({ ids, asOf, snapshotId }) {
    const bytes = await ids.encode()
    const isCompressed = bytes.length > plainBytesMax
    const header = { total: ids.total, asOf, snapshotId, isCompressed }
    return framed(header, isCompressed ? await compress(bytes, compression) : bytes)
  },

  async decode(bytes, lifetime) {
    const { header, body } = unframed(bytes)
    const { total, asOf, snapshotId, isCompressed } = headerSchema.parse(header)
    const ids = isCompressed ? await decompress(body, { maxOutputLength: idsBytesMax }) : body
    return { ids: joinedIdList(ids.toString(), total), asOf, snapshotId, ...lifetime }
  },
}
