/**
 * Keeps a list index up to date with the tables: it loads the index once, and then adds the changes.
 *
 * Promise: the index that `current` returns holds every change up to its `asOf`, and nothing that was not in the tables. A
 * change that becomes visible later has a stamp at or after that moment, so a later refresh finds it. The tables are asked at most once per `freshMs`, however many requests arrive.
 *
 * If the number of campaigns differs from the tables several times in a row, the index is loaded again. That finds what
 * left no change behind, for example when a rebuilt table was swapped in. Until the index is loaded, and while there
 * are too many campaigns for it, there is no index and ClickHouse computes the lists.
 */
import type { Databases, Tables } from '../../shared/tables/port.ts'
import type { ChangedEntriesRow, ChangesRow, EntriesRow } from '../views/rows.ts'
import {
  campaignChangesStatement,
  changedEntriesStatement,
  nextEntriesStatement,
} from '../views/statements.ts'
import { createListIndex, type ListIndex } from './list-index.ts'

export interface ListFollowerOptions {
  commitHorizonMs: number
  statementMsMax: number
  /** The index holds at most this many campaigns. 0: no index. */
  campaignsMax: number
  /** The age at which the index is refreshed, ms. Default 1,000. */
  freshMs?: number
  /** Pause between two attempts to load, ms. Default 30,000. */
  reloadMs?: number
  /** Campaigns per statement during a load. Default 20,000. */
  chunkRows?: number
  /** If there are more changes than this at once, the whole index is loaded again. Default 50,000. */
  changesMax?: number
}

/** An index and its moment. */
export interface FollowedIndex {
  index: ListIndex
  /** ClickHouse's clock when the latest refresh began to read, Unix ms. */
  readAt: number
  /** The watermark of that refresh, Unix ms. */
  asOf: number
}

export interface ListFollower {
  /**
   * The index, not older than `freshMs`, with every change that a list as of `asOf` (Unix ms) has. Undefined if there
   * is no index yet, or if there are too many campaigns for one. Rejects with the error of ClickHouse.
   */
  current(asOf?: number): Promise<FollowedIndex | undefined>
}

export interface ListFollowerDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: ListFollowerOptions
  /** Milliseconds. */
  now: () => number
  onError?: (error: unknown) => void
}

// The end of ClickHouse's time range: nothing has changed after it.
const never = Date.UTC(2299, 0)
// A new campaign may appear between counting and reading, so one difference means nothing.
const mismatchesMax = 5
const defaults = { freshMs: 1_000, reloadMs: 30_000, chunkRows: 20_000, changesMax: 50_000 }

/** Creates a follower without an index. The first call of `current` starts to load one. */
export function createListFollower(dependencies: ListFollowerDependencies): ListFollower {
  const { tables, databases, now, onError } = dependencies
  const options = { ...defaults, ...dependencies.options }
  const { commitHorizonMs, statementMsMax: msMax, campaignsMax, changesMax, chunkRows } = options
  let followed: FollowedIndex | undefined
  let refreshedAt = Number.NEGATIVE_INFINITY
  let refreshing: Promise<void> | undefined
  let loadedAt = Number.NEGATIVE_INFINITY
  let isLoading = false
  let mismatches = 0

  async function singleRow<Row>(statement: Parameters<typeof tables.rows>[0]): Promise<Row> {
    const [row] = await tables.rows<Row>(statement)
    if (row === undefined) throw new Error('a statement of the list index returned no row')
    return row
  }

  const changesSince = (since: number) =>
    singleRow<ChangesRow>(
      campaignChangesStatement(since, databases, { idsMax: changesMax + 1, commitHorizonMs, msMax }),
    )

  async function load(): Promise<void> {
    // A statement without changes returns the time and the size. A refresh then finds what changes during the load.
    const { read_at: readAt, as_of: asOf, total } = await changesSince(never)
    if (total > campaignsMax) return
    const index = createListIndex({ sizeExpected: total })
    for (let after = '', isDone = false; !isDone; ) {
      const entries = await singleRow<EntriesRow>(
        nextEntriesStatement(after, databases, { rowsMax: chunkRows, msMax }),
      )
      index.put(entries)
      after = entries.ids.at(-1) ?? after
      isDone = entries.ids.length < chunkRows
      if (index.size > campaignsMax) return
    }
    await index.prepare()
    followed = { index, readAt, asOf }
    await refreshOnce(followed)
  }

  function startLoading(): void {
    if (isLoading || now() - loadedAt < options.reloadMs) return
    isLoading = true
    loadedAt = now()
    load()
      .catch(error => onError?.(error))
      .finally(() => {
        isLoading = false
      })
  }

  function discardAndReload(): void {
    followed = undefined
    mismatches = 0
    startLoading()
  }

  async function refresh({ index, asOf: since }: FollowedIndex): Promise<void> {
    const askedAt = now()
    const changes = await changesSince(since)
    if (changes.ids.length > changesMax || changes.total > campaignsMax) return discardAndReload()
    let { total } = changes
    if (changes.ids.length > 0) {
      // This is read after the ids, so a campaign that is missing here is no longer public.
      const entries = await singleRow<ChangedEntriesRow>(changedEntriesStatement(since, databases, msMax))
      const present = new Set(entries.ids)
      index.put(entries)
      index.remove(changes.ids.filter(id => !present.has(id)))
      total = entries.total
    }
    mismatches = index.size === total ? 0 : mismatches + 1
    if (mismatches === mismatchesMax) return discardAndReload()
    followed = { index, readAt: changes.read_at, asOf: changes.as_of }
    refreshedAt = askedAt
  }

  /** One refresh at a time. Callers that arrive meanwhile wait for it. */
  function refreshOnce(followedNow: FollowedIndex): Promise<void> {
    refreshing ??= refresh(followedNow).finally(() => {
      refreshing = undefined
    })
    return refreshing
  }

  const isCurrent = (followedNow: FollowedIndex, asOf: number) =>
    now() - refreshedAt < options.freshMs && followedNow.asOf >= asOf

  return {
    async current(asOf = Number.NEGATIVE_INFINITY) {
      if (campaignsMax === 0) return undefined
      if (followed === undefined) startLoading()
      else if (!isCurrent(followed, asOf)) await refreshOnce(followed)
      // A refresh that was running already may have started before the moment that is asked for.
      if (followed && followed.asOf < asOf) await refreshOnce(followed)
      return followed && followed.asOf >= asOf ? followed : undefined
    },
  }
}
