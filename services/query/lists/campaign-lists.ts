/**
 * Lists of campaigns: the ids that match a query, their order, and the watermark.
 *
 * Promise: all pages of one query within one cache period come from one snapshot, so total, order and membership do not
 * change between them. The exception is a snapshot that was evicted because of the memory limit; its pages show this by
 * another `snapshotId`. The lists of one API key cannot push out those of a key that holds less.
 *
 * `asOf` cannot show it: while a statement of the fold runs, the watermark stands still, and rows become visible one after
 * the other. Two snapshots of that time have the same `asOf` and different campaigns.
 */
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress, constants } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { ListParameters } from '../../../contracts/api/parameters.ts'
import { createFairYield, createShareOfLoop } from '../../runtime/async/fair-turns.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import type { Cache, CacheKind, Lifetime } from '../cache/cache.ts'
import { presentTimestamp } from '../campaigns/campaign-fields.ts'
import { digestText } from './digest.ts'
import { type IdList, joinedIdList } from './id-list.ts'
import type { ListFollower } from './list-follower.ts'
import {
  isOfAll,
  type ListQuery,
  removalsStatement,
  type SnapshotRow,
  snapshotStatement,
} from './list-statements.ts'

/** The ids of a list. Moments are ISO 8601. */
export interface SelectedList {
  ids: IdList
  /** The list contains every change up to this moment. */
  asOf: string
  /** Of a list of all campaigns: the digest of all public ones at the moment of this list (digest.ts). */
  digest?: string | undefined
  /** Of removals: they are complete from this moment on. */
  keptSince?: string | undefined
}

/** A list that is kept. Everything that is built from it expires with it. */
export interface Snapshot extends SelectedList, Lifetime {
  /** Differs from that of every other snapshot, also of the same query and moment, and of another process. */
  snapshotId: string
}

export type CampaignLists = ReturnType<typeof createCampaignLists>

/** Snapshots by list key. */
export type SnapshotCache = Pick<Cache<Snapshot>, 'get' | 'forgetOld'>

/** Creates lists that are computed once per cache period. `newSnapshotId` returns an id that is unique among all processes. */
export function createCampaignLists(
  source: ListSource,
  snapshots: SnapshotCache,
  {
    listCacheMs,
    newSnapshotId,
    now,
  }: { listCacheMs: number; newSnapshotId: () => string; now: () => number },
) {
  /** One page of ids, with the total of the whole list. It expires with its snapshot. */
  async function page(
    key: string,
    select: () => Promise<SelectedList>,
    { limit, offset }: ListParameters,
    owner: string | undefined,
  ) {
    const load = async (): Promise<Snapshot> => {
      const createdAt = now()
      const selected = await select()
      return { ...selected, snapshotId: newSnapshotId(), createdAt, expiresAt: createdAt + listCacheMs }
    }
    const { ids, ...rest } = await snapshots.get(key, load, owner)
    return { ...rest, ids: ids.page(limit, offset), total: ids.total }
  }

  return {
    /** `owner`: the API key that asks. */
    page: (asked: ListParameters, owner?: string) =>
      page(listKey(asked), () => source.select(asked), asked, owner),

    /** One page of removals. Each of its `ids` is Unix milliseconds, a space and an id. */
    removals(asked: ListParameters, owner?: string) {
      const since = asked.updatedSince
      return page(`removals ${since ?? '*'}`, () => source.removals(since), asked, owner)
    },
  }
}

/** The cache key of a list query; the same for every spelling of the query. */
export function listKey({ status, category, sort, updatedSince }: ListQuery): string {
  return `${sort} ${status ?? '*'} ${updatedSince ?? '*'} ${category === null ? '*' : `=${category}`}`
}

/*
 * The cache of list snapshots. With Redis the pages of one query come from one snapshot, whichever process answers them. The
 * exception is a key that reads many long lists within a minute: those beyond its share stay in one process, and their pages show
 * it by another `snapshotId`.
 */

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

// So many keys that store lists have a budget of their own.
const keysMax = 10_000

/** Whether a key may store one more snapshot in Redis. A key's period starts when it first stores one. */
export function snapshotBudget({ monotonicMs: now }: Pick<Runtime, 'monotonicMs'>, bytesMax = keyBytesMax) {
  const spent = new LRUCache<string, number>({
    ...{ max: keysMax, ttl: keyPeriodMs, noUpdateTTL: true, ttlResolution: 0, perf: { now } },
  })
  return ({ ids }: Snapshot, owner: string): boolean => {
    const bytes = (spent.get(owner) ?? 0) + ids.encodedBytes
    if (bytes <= bytesMax) spent.set(owner, bytes)
    return bytes <= bytesMax
  }
}

/* The sources of lists: ClickHouse, or the list index in this process. */

// A thousand requests may have waited for one refresh of the index.
const yieldAfterMs = 5
// A list of many million campaigns takes longer than this. Other requests run in between.
const partMsMax = 3
// The lists of one moment, without a rest: some of a million campaigns.
const restAfterMs = 20

export type ListSource = ReturnType<typeof createSqlListSource>

/** Creates a source that runs one ClickHouse statement per list. `keptMs`: for how long removals are shown. */
export function createSqlListSource(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  bounds: { keptMs: number; msMax: number },
) {
  async function listOf(statement: Statement): Promise<SelectedList> {
    const [row] = await tables.rows<SnapshotRow>(statement)
    if (row === undefined) throw new Error('the statement of a list returned no row')
    const { ids, total, as_of, digest_sum, kept_since } = row
    return {
      ids: joinedIdList(ids, total),
      asOf: presentTimestamp(as_of),
      digest: digest_sum === undefined ? undefined : digestText(total, BigInt(digest_sum)),
      keptSince: kept_since === undefined ? undefined : new Date(kept_since).toISOString(),
    }
  }
  return {
    select: (query: ListQuery) => listOf(snapshotStatement(query, databases, bounds.msMax)),
    /** The removals since a moment. An entry is Unix milliseconds, a space and an id. */
    removals: (since: number | null) => listOf(removalsStatement(since, databases, bounds)),
  }
}

/** Creates a source that uses the index, or `fallback` while there is no index. */
export function createIndexListSource(
  follower: ListFollower,
  fallback: Pick<ListSource, 'select'>,
  { monotonicMs: now }: Pick<Runtime, 'monotonicMs'>,
): Pick<ListSource, 'select'> {
  const fairYield = createFairYield({ msMax: yieldAfterMs, now })
  const inShare = createShareOfLoop({ partMsMax, restAfterMs, now })
  return {
    async select(query) {
      const followed = await follower.current()
      if (!followed) return fallback.select(query)
      // All callers that waited for a refresh continue at once. The index may change during the yield; `readAt` and `asOf`
      // stay true.
      await fairYield()
      const { index, readAt, asOf } = followed
      const list = await inShare(async pause => ({
        // A list has the campaigns of the moment at which it begins.
        digest: isOfAll(query) ? index.digest() : undefined,
        ids: await index.select(query, readAt, pause),
      }))
      return { ...list, asOf: new Date(asOf).toISOString() }
    },
  }
}
