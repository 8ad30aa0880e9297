/**
 * The snapshots of lists that all processes share through Redis, so that the pages of one query come from one snapshot
 * whichever process answers them. See `createRedisSharedCache` for what it promises.
 */
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'
import { z } from 'zod'
import { createMemorySnapshotCache, type Snapshot, type SnapshotCache } from './campaign-lists.ts'
import { framed, unframed } from './framed-bytes.ts'
import type { RedisCacheDependencies } from './response-cache-redis.ts'
import { type Codec, createRedisSharedCache } from './shared-cache-redis.ts'

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)

// Another form of what is stored is another place to store it, while processes of two versions run.
const form = 'snapshot:1:'
// Below this, compressing saves no time on the way.
const plainBytesMax = 16 * 1024
// The lowest quality: ids hold little that a longer search would find.
const compression = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
// What the ids of some ten million campaigns take. Nothing larger was ever stored.
const idsBytesMax = 512 * 1024 * 1024

/** Makes a cache over what Redis holds already. */
export function createRedisSnapshotCache(dependencies: RedisCacheDependencies): SnapshotCache {
  return createRedisSharedCache<Snapshot>({
    ...dependencies,
    keyPrefix: dependencies.keyPrefix + form,
    codec: snapshotCodec,
    own: createMemorySnapshotCache(dependencies),
  })
}

const headerSchema = z.object({ total: z.int(), asOf: z.string(), isCompressed: z.boolean() })

const snapshotCodec: Codec<Snapshot> = {
  async encode({ joinedIds, total, asOf }) {
    const ids = Buffer.from(joinedIds)
    const isCompressed = ids.length > plainBytesMax
    return framed({ total, asOf, isCompressed }, isCompressed ? await compress(ids, compression) : ids)
  },

  async decode(bytes, lifetime) {
    const { header, body } = unframed(bytes)
    const { total, asOf, isCompressed } = headerSchema.parse(header)
    const ids = isCompressed ? await decompress(body, { maxOutputLength: idsBytesMax }) : body
    return { joinedIds: ids.toString(), checkpoints: [0], total, asOf, ...lifetime }
  },
}
