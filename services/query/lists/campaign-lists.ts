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
import type { Runtime } from '../../runtime/runtime.ts'
import type { Cache, Lifetime } from '../cache/cache.ts'
import type { IdList } from './id-list.ts'
import type { ListSource, SelectedList, SelectRemovals } from './list-source.ts'
import type { ListQuery } from './list-statements.ts'

/** One page of ids. It expires with its snapshot, as everything that is built from it. `asOf` is ISO 8601. */
export interface ListPage extends Lifetime {
  ids: string[]
  /** The total of the whole list. */
  total: number
  /** The list contains every change up to this moment. */
  asOf: string
  /** Differs from that of every other snapshot, also of the same query and moment, and of another process. */
  snapshotId: string
  /** Of removals: they are complete from this moment on. ISO 8601. */
  keptSince?: string | undefined
  /** Of a list of all campaigns: their digest (digest.ts). */
  digest?: string | undefined
}

export interface CampaignLists {
  /** `owner`: the API key that asks. */
  page(query: ListQuery, range: { limit: number; offset: number }, owner?: string): Promise<ListPage>
  /** One page of removals since a moment (Unix ms). Its `ids` are entries of `SelectRemovals`. */
  removals(since: number | null, range: { limit: number; offset: number }, owner?: string): Promise<ListPage>
}

/** The ids of a query, and when they expire. */
export interface Snapshot extends Omit<ListPage, 'ids' | 'total'> {
  ids: IdList
}

/** Snapshots by list key. */
export type SnapshotCache = Pick<Cache<Snapshot>, 'get' | 'forgetOld'>

/** Creates lists that are computed once per cache period. `newSnapshotId` returns an id that is unique among all processes. */
export function createCampaignLists(
  source: ListSource & { removals: SelectRemovals },
  snapshots: SnapshotCache,
  {
    listCacheMs,
    newSnapshotId,
    now,
  }: { listCacheMs: number; newSnapshotId: () => string } & Pick<Runtime, 'now'>,
): CampaignLists {
  async function load(select: () => Promise<SelectedList>): Promise<Snapshot> {
    const createdAt = now()
    const selected = await select()
    return { ...selected, snapshotId: newSnapshotId(), createdAt, expiresAt: createdAt + listCacheMs }
  }

  async function page(
    key: string,
    select: () => Promise<SelectedList>,
    { limit, offset }: { limit: number; offset: number },
    owner?: string,
  ): Promise<ListPage> {
    const { ids, ...rest } = await snapshots.get(key, () => load(select), owner)
    return { ...rest, ids: ids.page(limit, offset), total: ids.total }
  }

  return {
    page: (query, range, owner) => page(listKey(query), () => source.select(query), range, owner),
    removals: (since, range, owner) =>
      page(`removals ${since ?? '*'}`, () => source.removals(since), range, owner),
  }
}

/** The cache key of a list query; the same for every spelling of the query. */
export function listKey({ status, category, sort, updatedSince }: ListQuery): string {
  return `${sort} ${status ?? '*'} ${updatedSince ?? '*'} ${category === null ? '*' : `=${category}`}`
}
