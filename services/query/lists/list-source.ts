/** The sources of lists: ClickHouse, or the list index in this process. */
import type { Runtime } from '../../runtime/runtime.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { presentTimestamp } from '../campaigns/campaign-fields.ts'
import { createFairYield, createShareOfLoop } from '../fair-yield.ts'
import { digestText } from './digest.ts'
import { type IdList, joinedIdList } from './id-list.ts'
import type { ListFollower } from './list-follower.ts'
import {
  isOfAll,
  type ListQuery,
  type RemovalsRow,
  removalsStatement,
  type SnapshotRow,
  snapshotStatement,
} from './list-statements.ts'

/** The ids of a list. The list contains every change up to `asOf` (ISO 8601). */
export interface SelectedList {
  ids: IdList
  asOf: string
  /** The digest of all public campaigns at the moment of this list; only if it is of all campaigns. */
  digest?: string | undefined
}

/** The removals since a moment. An entry is Unix milliseconds, a space and an id. They are complete from `keptSince` on (ISO 8601). */
export type SelectRemovals = (since: number | null) => Promise<SelectedList & { keptSince: string }>

// A thousand requests may have waited for one refresh of the index.
const yieldAfterMs = 5
// A list of many million campaigns takes longer than this. Other requests run in between.
const partMsMax = 3
// The lists of one moment, without a rest: some of a million campaigns.
const restAfterMs = 20

export interface ListSource {
  select(query: ListQuery): Promise<SelectedList>
}

/** Creates a source that runs one ClickHouse statement per list. */
export function createSqlListSource(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  statementMsMax: number,
): ListSource {
  return {
    async select(query) {
      const [row] = await tables.rows<SnapshotRow>(snapshotStatement(query, databases, statementMsMax))
      if (row === undefined) throw new Error('the snapshot statement returned no row')
      const { ids, total, as_of, digest_sum } = row
      const digest = digest_sum === undefined ? undefined : digestText(total, BigInt(digest_sum))
      return { ids: joinedIdList(ids, total), asOf: presentTimestamp(as_of), digest }
    },
  }
}

/** Creates what reads removals, with one statement each. `keptMs`: for how long they are shown. */
export function createRemovals(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  bounds: { keptMs: number; msMax: number },
): SelectRemovals {
  return async since => {
    const [row] = await tables.rows<RemovalsRow>(removalsStatement(since, databases, bounds))
    if (row === undefined) throw new Error('the statement of removals returned no row')
    return {
      ids: joinedIdList(row.ids, row.total),
      asOf: presentTimestamp(row.as_of),
      keptSince: new Date(row.kept_since).toISOString(),
    }
  }
}

/** Creates a source that uses the index, or `fallback` while there is no index. */
export function createIndexListSource(
  follower: ListFollower,
  fallback: ListSource,
  { monotonicMs: now }: Pick<Runtime, 'monotonicMs'>,
): ListSource {
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
      let digest: string | undefined
      const ids = await inShare(pause => {
        // A list has the campaigns of the moment at which it begins.
        digest = isOfAll(query) ? index.digest() : undefined
        return index.select(query, readAt, pause)
      })
      return { ids, asOf: new Date(asOf).toISOString(), digest }
    },
  }
}
