/** Where lists come from: computed by ClickHouse, or by this process from its index. */
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { ListFollower } from './list-follower.ts'
import { presentTimestamp } from './present.ts'
import type { SnapshotRow } from './rows.ts'
import { type ListQuery, snapshotStatement } from './statements.ts'
import { createTurns } from './turns.ts'

/** All ids of a list in their order, joined by `idSeparator`. Every change up to `asOf`, ISO 8601, is in it. */
export interface SelectedList {
  joinedIds: string
  total: number
  asOf: string
}

const turnMsMax = 10

export interface ListSource {
  select(query: ListQuery): Promise<SelectedList>
}

export interface SqlListSourceDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: { commitHorizonMs: number; statementMsMax: number }
}

/** Lists that ClickHouse computes, a statement each. */
export function createSqlListSource({ tables, databases, options }: SqlListSourceDependencies): ListSource {
  return {
    async select(query) {
      const [row] = await tables.rows<SnapshotRow>(
        snapshotStatement(query, databases, {
          commitHorizonMs: options.commitHorizonMs,
          msMax: options.statementMsMax,
        }),
      )
      if (row === undefined) throw new Error('the snapshot statement returned no row')
      return { joinedIds: row.ids, total: row.total, asOf: presentTimestamp(row.as_of) }
    },
  }
}

/** Lists from the index, and from `fallback` while there is none. */
export function createIndexListSource({
  follower,
  fallback,
  commitHorizonMs,
}: {
  follower: ListFollower
  fallback: ListSource
  commitHorizonMs: number
}): ListSource {
  const turn = createTurns({ msMax: turnMsMax, now: () => performance.now() })
  return {
    async select(query) {
      const followed = await follower.current()
      if (!followed) return fallback.select(query)
      // All who came during a refresh go on at once. What the index learns meanwhile does not belie its `readAt`.
      await turn()
      const { index, readAt } = followed
      return { ...index.select(query, readAt), asOf: new Date(readAt - commitHorizonMs).toISOString() }
    },
  }
}
