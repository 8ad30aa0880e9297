/**
 * The swap: pauses the fold, brings the shadow tables up to the end of the log, stamps them, and swaps them with the live
 * tables. On a cluster: the swap of one shard (parts.ts).
 *
 * Promises:
 * - Everything that an answer from the live tables has shown is in the rebuilt tables. The fold is paused and earlier
 *   statements have ended before the rebuild looks at the end of the log that it has to reach.
 * - A row with the same content keeps its `updated_at`. A changed row gets a stamp at or above the watermark, which stands still
 *   until the fold goes on, after the swap.
 * - Nothing is swapped once another process folds, however late this process sends its statement (swap-permit.ts).
 * - After a kill, the live tables are all old or all new: the swap is one statement. If ClickHouse itself died in the middle
 *   of it, `completeSwap` completes it.
 */
import { contentColumns } from '../../../contracts/tables/campaign-columns.ts'
import { foldPauseMsMax } from '../../projector/fold/fold-pause.ts'
import { stampOf, type Term } from '../../projector/fold/fold-statements.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { distributedDatabases } from '../../tables/replicated.ts'
import type { Time } from '../../tables/running-statements.ts'
import {
  countLive,
  readTableIds,
  SwapPermitRevoked,
  shadowOf,
  swapTables,
  type TableIds,
  untilNoSwapRuns,
} from '../build/shadow-tables.ts'
import { shardNameOf } from '../cluster.ts'
import { latestRebuild, swapOf } from '../rebuild-log.ts'
import {
  FoldPauseLost,
  type HeldFoldDependencies,
  holdsEpoch,
  pauseFold,
  release,
  stampCounter,
} from './held-fold.ts'
import { createPermit, revokePermits } from './swap-permit.ts'

/** What happens during the fold pause. */
export interface WhilePaused {
  /** Whether too many rows changed to stamp them in this pause. Then `stampChanged` has to follow. */
  hasManyChanges: boolean
  /** Brings the shadow tables up to the end of the log, folded and verified. */
  catchUp(): Promise<void>
  /** Records what is needed to continue. Once this is recorded, the swap may have happened. */
  beforeSwap(rebuilt: TableIds): Promise<void>
}

export interface SwapReport {
  /** How long the fold was paused, ms. */
  pausedMs: number
  /** From the stamp of the changed rows until they were visible, ms. */
  stampedMs: number
}

// The swap begins in the first half of the pause, or the pause is taken anew: new changes must not wait longer. If the process
// stands still after that look, the permit makes the swap safe, however late it comes (swap-permit.ts).
const swapMsMax = foldPauseMsMax / 2

/**
 * Throws `FoldPauseLost`, or what the work or ClickHouse throw. If it fails before the swap begins, the pause has ended and the
 * live tables are as before. If the swap itself fails, the pause lasts until it expires, and `completeSwap` has to run.
 */
export async function runSwap(dependencies: HeldFoldDependencies, work: WhilePaused): Promise<SwapReport> {
  const { tables, databases, monotonicMs } = dependencies
  const shadow = shadowOf(databases)
  const takenAt = monotonicMs()
  const term = await pauseFold(dependencies)
  let isBegun = false
  try {
    await work.catchUp()
    const stampedAt = monotonicMs()
    for (const statement of stampStatements(databases, term, work)) await tables.run(statement)
    const rebuilt = await readTableIds(tables, shadow)
    await work.beforeSwap(rebuilt)
    const permit = await createPermit(tables, databases, term.epoch)
    // A process that takes the epoch after this look revokes the permit before it folds.
    if (monotonicMs() - takenAt > swapMsMax || !(await holdsEpoch(dependencies, term))) {
      throw new FoldPauseLost(`the tables could not be swapped within ${swapMsMax} ms`)
    }
    if (await isOfNextDay(dependencies, term)) throw new FoldPauseLost('the UTC day ended during the swap')
    isBegun = true
    await swapTables(dependencies.tablesWithoutRetry, databases, rebuilt, { ...dependencies, permit })
    isBegun = false
    const stampedMs = monotonicMs() - stampedAt
    await release(dependencies)
    return { pausedMs: monotonicMs() - takenAt, stampedMs }
  } catch (error) {
    const isRevoked = error instanceof SwapPermitRevoked
    // A swap that was begun may be half done. Then no process may fold until the pause expires and the next one completes it.
    if (!isBegun || isRevoked) await release(dependencies)
    throw isRevoked ? new FoldPauseLost(error.message, { cause: error }) : error
  }
}

/**
 * Revokes the permit of a swap that has not happened, and completes a swap that is only half done. For the process that folds
 * after a pause has expired. `isShard`: the tables are one shard's part, and the rebuild log is that of the whole cluster.
 */
export async function completeSwap(
  tables: Tables,
  databases: Databases,
  { isShard = false, ...time }: Time & { isShard?: boolean },
): Promise<void> {
  await revokePermits(tables, databases)
  // A statement that was faster than the revocation.
  await untilNoSwapRuns(tables, databases, time)
  const state = await latestRebuild(tables, isShard ? distributedDatabases(databases) : databases)
  if (state?.phase !== 'swapping') return
  const { tableIds } = swapOf(state.detail, isShard ? await shardNameOf(tables) : null)
  if (!tableIds) return
  const live = await countLive(tables, databases, tableIds)
  if (live > 0) await swapTables(tables, databases, tableIds, time)
}

const files = {
  stamp: readSql('stamp', import.meta.url),
  departures: readSql('stamp-departures', import.meta.url),
}

function stampStatements(
  databases: Databases,
  term: Term,
  { hasManyChanges }: Pick<WhilePaused, 'hasManyChanges'>,
): Statement[] {
  const shadow = shadowOf(databases)
  const query_params = {
    also_changed: !hasManyChanges,
    kept_id: foldId(term, stampCounter + 1n),
    changed_id: foldId(term, stampCounter + 2n),
  }
  return [files.stamp, files.departures].map(sql => ({
    query: nameDatabases(sql, shadow)
      .replaceAll('${live}', databases.model)
      .replaceAll('${stamp}', stampOf(databases))
      .replaceAll('${columns}', contentColumns.join(', '))
      .replaceAll('${row_columns}', contentColumns.map(name => `row.${name}`).join(', ')),
    query_params,
  }))
}

function foldId({ epoch }: Term, counter: bigint): string {
  return ((epoch << 32n) + counter).toString()
}

/**
 * Whether a row of the shadow tables was stamped after the day of this pause. Swapped in, it would replace a row of a day that is
 * not closed yet (projector/fold/day-close.ts). The next pause closes the day.
 */
async function isOfNextDay({ tables, databases }: HeldFoldDependencies, { until }: Term): Promise<boolean> {
  const [row] = await tables.rows<{ latest: number }>({
    query: `SELECT toUnixTimestamp64Milli(max(updated_at)) AS latest FROM ${shadowOf(databases).model}.campaigns`,
  })
  return until !== undefined && (row?.latest ?? 0) >= until
}
