/**
 * The cache of list snapshots. With Redis the pages of one query come from one snapshot, whichever process answers them. The
 * exception is a key that reads many long lists within a minute: those beyond its share stay in one process, and their pages show
 * it by another `snapshotId`.
 */
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'
import { z } from 'zod'
import type { CacheKind } from '../cache/cache.ts'
import type { Snapshot } from './campaign-lists.ts'
import { joinedIdList } from './id-list.ts'

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)

// Below this size compression saves no time.
const plainBytesMax = 16 * 1024
// The lowest quality, because a longer search finds little in ids.
const compression = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
// The size of the ids of about ten million campaigns. Nothing larger is ever stored.
const idsBytesMax = 512 * 1024 * 1024

const headerSchema = z.object({
  total: z.int(),
  asOf: z.string(),
  snapshotId: z.string(),
  isCompressed: z.boolean(),
  keptSince: z.string().optional(),
  digest: z.string().optional(),
})

export const snapshots: CacheKind<Snapshot> = {
  prefix: 'snapshot:3:',
  bytesOf: ({ ids }) => ids.bytes,

  async encode({ ids, asOf, snapshotId, keptSince, digest }) {
    const bytes = await ids.encode()
    const isCompressed = bytes.length > plainBytesMax
    const header = { total: ids.total, asOf, snapshotId, isCompressed, keptSince, digest }
    return { header, body: isCompressed ? await compress(bytes, compression) : bytes }
  },

  async decode(header, body, lifetime) {
    const { total, isCompressed, ...rest } = headerSchema.parse(header)
    const ids = isCompressed ? await decompress(body, { maxOutputLength: idsBytesMax }) : body
    return { ids: joinedIdList(ids.toString(), total), ...rest, ...lifetime }
  },
}

// What one key may store in a minute, before compression: four lists of a million campaigns, or ten of 400,000. More
// lists stay in the process that made them. Otherwise one key could fill Redis, and joining its lists would keep the
// process busy.
const keyBytesMax = 96 * 1024 * 1024
const keyPeriodMs = 60_000

/** Whether a key may store one more snapshot in Redis. A key's period starts when it first stores one. `now`: milliseconds. */
export function snapshotBudget(
  now: () => number,
  bytesMax = keyBytesMax,
): (snapshot: Snapshot, owner: string) => boolean {
  /** In the order in which their periods started. */
  const spent = new Map<string, { since: number; bytes: number }>()

  function dropEnded(time: number): void {
    for (const [owner, { since }] of spent) {
      if (Math.abs(time - since) < keyPeriodMs) return
      spent.delete(owner)
    }
  }

  return ({ ids }, owner) => {
    const time = now()
    dropEnded(time)
    const period = spent.get(owner) ?? { since: time, bytes: 0 }
    if (period.bytes + ids.encodedBytes > bytesMax) return false
    period.bytes += ids.encodedBytes
    spent.set(owner, period)
    return true
  }
}
