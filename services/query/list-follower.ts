/**
 * Keeps a list index up to date with the tables: loaded whole once, and then with what changed since.
 *
 * Promise: what `current` gives holds every change up to its `readAt` minus the commit horizon, and nothing that was not
 * in the tables. A change that becomes visible later than that is stamped anew by the fold, so it comes with a later
 * refresh. However many ask, the tables are asked once in `freshMs`.
 * When the number of campaigns disagrees with the tables again and again, the index is loaded anew: so it finds what left
 * no change behind, as when a rebuilt table was swapped in. Until it is loaded, and while there are more campaigns than
 * it may hold, there is no index and lists are answered by ClickHouse.
 */
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createListIndex, type ListIndex } from './list-index.ts'
import type { ChangedEntriesRow, ChangesRow, EntriesRow } from './rows.ts'
import { campaignChangesStatement, changedEntriesStatement, nextEntriesStatement } from './statements.ts'

export interface ListFollowerOptions {
  commitHorizonMs: number
  statementMsMax: number
  /** More campaigns than this are not held in memory. 0: none are. */
  campaignsMax: number
  /** How old an index may be before the tables are asked again, ms. Default 1,000. */
  freshMs?: number
  /** Pause between two attempts to load, ms. Default 30,000. */
  reloadMs?: number
  /** Campaigns that one statement of a load brings. Default 20,000. */
  chunkRows?: number
  /** More changes than this at once mean to load all anew. Default 50,000. */
  changesMax?: number
}

/** An index as of a moment. */
export interface FollowedIndex {
  index: ListIndex
  /** ClickHouse's clock when the latest refresh began to read, Unix ms. */
  readAt: number
}

export interface ListFollower {
  /**
   * The index, no older than `freshMs`, and with every change that a list as of `asOf` (Unix ms) has. Undefined where
   * there is none yet, or none that may be. Rejects with what ClickHouse said.
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

// The end of ClickHouse's time, where nothing has changed yet.
const never = Date.UTC(2299, 0)
// New campaigns may appear between counting and reading, so that one disagreement says nothing.
const mismatchesMax = 5
const defaults = { freshMs: 1_000, reloadMs: 30_000, chunkRows: 20_000, changesMax: 50_000 }

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

  async function only<Row>(statement: Parameters<typeof tables.rows>[0]): Promise<Row> {
    const [row] = await tables.rows<Row>(statement)
    if (row === undefined) throw new Error('a statement of the list index returned no row')
    return row
  }

  const changesSince = (since: number) =>
    only<ChangesRow>(campaignChangesStatement(since, databases, { idsMax: changesMax + 1, msMax }))

  async function load(): Promise<void> {
    // A look at no change tells the time and the size. What changes while the load goes on comes with a refresh.
    const { read_at: readAt, total } = await changesSince(never)
    if (total > campaignsMax) return
    const index = createListIndex({ sizeExpected: total })
    for (let after = '', isDone = false; !isDone; ) {
      const entries = await only<EntriesRow>(
        nextEntriesStatement(after, databases, { rowsMax: chunkRows, msMax }),
      )
      index.put(entries)
      after = entries.ids.at(-1) ?? after
      isDone = entries.ids.length < chunkRows
      if (index.size > campaignsMax) return
    }
    await index.prepare()
    followed = { index, readAt }
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

  function giveUp(): void {
    followed = undefined
    mismatches = 0
    startLoading()
  }

  async function refresh({ index, readAt }: FollowedIndex): Promise<void> {
    const askedAt = now()
    const since = readAt - commitHorizonMs
    const changes = await changesSince(since)
    if (changes.ids.length > changesMax || changes.total > campaignsMax) return giveUp()
    let { total } = changes
    if (changes.ids.length > 0) {
      // Read after the ids: a campaign that is missing now has left the public.
      const entries = await only<ChangedEntriesRow>(changedEntriesStatement(since, databases, msMax))
      const present = new Set(entries.ids)
      index.put(entries)
      index.remove(changes.ids.filter(id => !present.has(id)))
      total = entries.total
    }
    mismatches = index.size === total ? 0 : mismatches + 1
    if (mismatches === mismatchesMax) return giveUp()
    followed = { index, readAt: changes.read_at }
    refreshedAt = askedAt
  }

  /** One refresh at a time; who comes meanwhile waits for it. */
  function refreshOnce(present: FollowedIndex): Promise<void> {
    refreshing ??= refresh(present).finally(() => {
      refreshing = undefined
    })
    return refreshing
  }

  const isCurrent = (present: FollowedIndex, asOf: number) =>
    now() - refreshedAt < options.freshMs && present.readAt - commitHorizonMs >= asOf

  return {
    async current(asOf = Number.NEGATIVE_INFINITY) {
      if (campaignsMax === 0) return undefined
      if (followed === undefined) startLoading()
      else if (!isCurrent(followed, asOf)) await refreshOnce(followed)
      // A refresh that was under way already may have begun before the moment that is asked for.
      if (followed && followed.readAt - commitHorizonMs < asOf) await refreshOnce(followed)
      return followed && followed.readAt - commitHorizonMs >= asOf ? followed : undefined
    },
  }
}
