/**
 * Lists of campaigns: which ids a query matches, in which order, as of when.
 *
 * Promise: all pages of one query that are asked for within one cache period come from one snapshot, so total, order
 * and membership do not move between them. A snapshot that the byte bound has pushed out is the exception; its pages
 * tell by their `asOf`.
 */
import { createExpiringCache, type ExpiringCache } from './expiring-cache.ts'
import type { ListSource } from './list-source.ts'
import { idSeparator, type ListQuery } from './statements.ts'

/** One page of ids. Times are Unix milliseconds, `asOf` is ISO 8601. */
export interface ListPage {
  ids: string[]
  /** Of the whole list. */
  total: number
  /** Every change up to this moment is in the list. */
  asOf: string
  createdAt: number
  /** When the snapshot ends, and with it everything that was made from it. */
  expiresAt: number
}

export interface CampaignLists {
  page(query: ListQuery, range: { limit: number; offset: number }): Promise<ListPage>
}

export interface CampaignListsDependencies {
  source: ListSource
  options: { listCacheMs: number; snapshotBytesMax: number }
  /** Unix milliseconds. */
  now: () => number
  /** Where snapshots are kept. Default: in memory. */
  snapshots?: SnapshotCache
}

/** All ids of a query in one string, and where in it every `checkpointStep`-th id begins, as far as pages needed it. */
export interface Snapshot extends Omit<ListPage, 'ids'> {
  joinedIds: string
  checkpoints: number[]
}

/** Snapshots by the keys of their lists. */
export type SnapshotCache = ExpiringCache<Snapshot>

const checkpointStep = 256

/** Makes an empty cache of at most `bytesMax`, for a service that is one process. `now` is in Unix milliseconds. */
export function createMemorySnapshotCache({
  bytesMax,
  now,
}: {
  bytesMax: number
  now: () => number
}): SnapshotCache {
  return createExpiringCache<Snapshot>({
    bytesMax,
    bytesOf: ({ joinedIds, total }) => 2 * joinedIds.length + (8 * total) / checkpointStep,
    expiresAt: snapshot => snapshot.expiresAt,
    now,
  })
}

/** Lists that are made once and kept for the cache period. */
export function createCampaignLists(dependencies: CampaignListsDependencies): CampaignLists {
  const { source, options, now } = dependencies
  const snapshots =
    dependencies.snapshots ?? createMemorySnapshotCache({ bytesMax: options.snapshotBytesMax, now })

  async function load(query: ListQuery): Promise<Snapshot> {
    const createdAt = now()
    const selected = await source.select(query)
    return { ...selected, checkpoints: [0], createdAt, expiresAt: createdAt + options.listCacheMs }
  }

  return {
    async page(query, { limit, offset }) {
      const snapshot = await snapshots.get(listKey(query), () => load(query))
      const { total, asOf, createdAt, expiresAt } = snapshot
      return { ids: idsOf(snapshot, limit, offset), total, asOf, createdAt, expiresAt }
    },
  }
}

/** Names a list query in a cache; the same for every way of writing it. */
export function listKey({ status, category, sort, updatedSince }: ListQuery): string {
  return `${sort} ${status ?? '*'} ${updatedSince ?? '*'} ${category === null ? '*' : `=${category}`}`
}

/** The ids at these places of the snapshot. */
export function idsOf(snapshot: Snapshot, limit: number, offset: number): string[] {
  const count = Math.min(limit, snapshot.total - offset)
  if (count <= 0) return []
  const start = startOf(snapshot, offset)
  const end = skip(snapshot.joinedIds, start, count) - idSeparator.length
  return snapshot.joinedIds.slice(start, end).split(idSeparator)
}

// Where the id at this place begins. Walks from the nearest checkpoint before it, and leaves new ones on the way.
function startOf({ joinedIds, checkpoints }: Snapshot, place: number): number {
  const wanted = Math.floor(place / checkpointStep)
  for (let known = checkpoints.length; known <= wanted; known++) {
    checkpoints.push(skip(joinedIds, checkpoints[known - 1] ?? 0, checkpointStep))
  }
  return skip(joinedIds, checkpoints[wanted] ?? 0, place % checkpointStep)
}

// The place after `count` ids and their separators; after the last id as if one more separator followed.
function skip(joinedIds: string, from: number, count: number): number {
  let at = from
  for (let skipped = 0; skipped < count; skipped++) {
    const separator = joinedIds.indexOf(idSeparator, at)
    if (separator < 0) return joinedIds.length + idSeparator.length
    at = separator + idSeparator.length
  }
  return at
}
