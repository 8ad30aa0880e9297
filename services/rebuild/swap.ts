/**
 * The swap: pauses the fold, brings the shadow tables up to the end of the log, stamps them, and swaps them with the live
 * tables.
 *
 * Promises:
 * - Everything that an answer from the live tables has shown is in the rebuilt tables. The fold is paused and earlier
 *   statements have ended before the rebuild looks at the end of the log that it has to reach.
 * - A row with the same content keeps its `updated_at`. A changed row becomes visible within the commit horizon of its stamp,
 *   or it stays in doubt, and the next fold worker gives it a new stamp.
 * - Nothing is swapped once another process folds, however late this process sends its statement (swap-permit.ts).
 * - After a kill, the live tables are all old or all new: the swap is one statement. If ClickHouse itself died in the middle
 *   of it, `completeSwap` completes it.
 */
import { contentColumns } from '../../contracts/tables/campaign-columns.ts'
import { SupersededFoldWorker } from '../projector/fold/fold-epochs.ts'
import {
  foldPauseMsMax,
  isPauseHolder,
  pauseHolderName,
  releasedHolderName,
} from '../projector/fold/fold-pause.ts'
import { isDayOver } from '../projector/fold/fold-pieces.ts'
import {
  appendFoldStatement,
  epochHoldersStatement,
  fill,
  stampOf,
  type Term,
  takeEpochStatement,
} from '../projector/fold/fold-statements.ts'
import { createFoldWorker, type FoldWorker, type FoldWorkerSettings } from '../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../projector/fold/running-folds.ts'
import type { Sleep } from '../shared/sleep.ts'
import { nameDatabases } from '../shared/tables/migrate.ts'
import type { Databases, Statement, Tables } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import type { Time } from '../shared/tables/running-statements.ts'
import { latestRebuild } from './rebuild-log.ts'
import {
  countLive,
  readTableIds,
  SwapPermitRevoked,
  shadowOf,
  swapTables,
  type TableIds,
  untilNoSwapRuns,
} from './shadow-tables.ts'
import { createPermit, revokePermits } from './swap-permit.ts'

export interface SwapDependencies {
  tables: Tables
  /** The same tables without retries. */
  tablesWithoutRetry: Tables
  databases: Databases
  /** Names this run of the rebuild; unique. */
  run: string
  settings: FoldWorkerSettings
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

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

/** The pause was lost, or lasted too long to be relied on. Nothing was swapped; the swap may be tried again. */
export class FoldPauseLost extends Error {
  override name = 'FoldPauseLost'
}

// The swap begins in the first half of the pause, or the pause is taken anew: new changes must not wait longer. If the process
// stands still after that look, the permit makes the swap safe, however late it comes (swap-permit.ts).
const swapMsMax = foldPauseMsMax / 2
// With 400,000 changed campaigns, each of this many pieces ends in time.
const stampPieces = 16
// Higher than any number that the fold worker's own statements get in this epoch.
const stampCounter = 2n ** 31n

/**
 * Throws `FoldPauseLost`, or what the work or ClickHouse throw. If it fails before the swap begins, the pause has ended and the
 * live tables are as before. If the swap itself fails, the pause lasts until it expires, and `completeSwap` has to run.
 */
export async function runSwap(dependencies: SwapDependencies, work: WhilePaused): Promise<SwapReport> {
  const { tables, databases, settings, monotonicMs } = dependencies
  const shadow = shadowOf(databases)
  const takenAt = monotonicMs()
  const term = await pauseFold(dependencies)
  let isBegun = false
  try {
    await work.catchUp()
    const stampedAt = monotonicMs()
    for (const statement of stampStatements(databases, term, work)) await tables.run(statement)
    // Rows that kept their stamp are certain now. The others are certain once the swap is known to have been in time.
    await confirm(dependencies, term, stampCounter + 2n)
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
    if (stampedMs <= settings.horizonMs) await confirm(dependencies, term, stampCounter + 4n)
    await release(dependencies, { isSettled: true })
    return { pausedMs: monotonicMs() - takenAt, stampedMs }
  } catch (error) {
    const isRevoked = error instanceof SwapPermitRevoked
    // A swap that was begun may be half done. Then no process may fold until the pause expires and the next one completes it.
    if (!isBegun || isRevoked) await release(dependencies, { isSettled: false })
    throw isRevoked ? new FoldPauseLost(error.message, { cause: error }) : error
  }
}

/**
 * Revokes the permit of a swap that has not happened, and completes a swap that is only half done. For the process that folds
 * after a pause has expired.
 */
export async function completeSwap(tables: Tables, databases: Databases, time: Time): Promise<void> {
  await revokePermits(tables, databases)
  // A statement that was faster than the revocation.
  await untilNoSwapRuns(tables, databases, time)
  const state = await latestRebuild(tables, databases)
  if (state?.phase !== 'swapping' || !state.detail.tableIds) return
  const live = await countLive(tables, databases, state.detail.tableIds)
  if (live > 0) await swapTables(tables, databases, state.detail.tableIds, time)
}

/**
 * Ends the pause of an earlier run that was killed, so that the fold does not have to wait until it expires. Must not be
 * called while a swap is half done.
 */
export async function releaseLeftPause(tables: Tables, databases: Databases, run: string): Promise<void> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  if (holders.some(({ holder }) => isPauseHolder(holder))) {
    await tables.run(takeEpochStatement(databases, releasedHolderName(run, { isSettled: false })))
  }
}

/** The stamp that a change would get now, as text. Every later stamp is at or after it. */
export async function readNextStamp(tables: Tables, databases: Databases): Promise<string> {
  const [row] = await tables.rows<{ stamp: string }>({
    query: `SELECT toString(${stampOf(databases)}) AS stamp`,
  })
  return row?.stamp ?? ''
}

/** The highest epoch in the live and the shadow tables. */
export async function highestEpoch(tables: Tables, databases: Databases): Promise<bigint> {
  const [row] = await tables.rows<{ epoch: string }>({
    query: `SELECT toString(greatest(
              (SELECT max(epoch) FROM ${databases.model}.fold_epochs),
              (SELECT max(epoch) FROM ${shadowOf(databases).model}.fold_epochs))) AS epoch`,
  })
  return BigInt(row?.epoch ?? '0')
}

function liveFoldWorker({ tables, databases, run, settings, ...rest }: SwapDependencies): FoldWorker {
  return createFoldWorker({
    ...rest,
    tables,
    databases,
    holder: pauseHolderName(run),
    settings,
    // A pause of a killed run does not count: only one rebuild runs at a time.
    respectsPause: () => false,
    settle: () => untilNoFoldRuns(tables, databases, { ...rest, msMax: 2 * settings.horizonMs }),
    epochFloor: () => highestEpoch(tables, databases),
  })
}

/**
 * Stamps the changed rows after a swap that changed many, in a second fold pause. `swappedAt`: a moment before the swap
 * (`readNextStamp`). Can be repeated. Throws `FoldPauseLost` if not all of it was done.
 */
export async function stampChanged(dependencies: SwapDependencies, swappedAt: string): Promise<void> {
  const { tables, databases, settings } = dependencies
  const msMax = settings.horizonMs / 2
  const term = await pauseFold(dependencies)
  try {
    for (let piece = 0; piece < stampPieces; piece++) {
      const id = (term.epoch << 32n) + stampCounter + BigInt(piece)
      const step = {
        term,
        foldId: id,
        pieces: stampPieces,
        piece,
        msMax,
        memoryBytesMax: settings.memoryBytesMax,
      }
      await tables.run({
        query: fill(files.changed, databases, step).replaceAll('${previous}', shadowOf(databases).model),
        query_params: {
          holder: term.holder,
          fold_id: id.toString(),
          pieces: stampPieces,
          piece,
          swapped_at: swappedAt,
        },
      })
      await confirm(dependencies, term, stampCounter + BigInt(piece))
    }
    if (!(await holdsEpoch(dependencies, term)))
      throw new FoldPauseLost('another process took the epoch while rows were stamped')
    await release(dependencies, { isSettled: true })
  } catch (error) {
    await release(dependencies, { isSettled: false })
    throw isDayOver(error)
      ? new FoldPauseLost('the UTC day ended during the stamps', { cause: error })
      : error
  }
}

const files = {
  stamp: readSql('stamp', import.meta.url),
  departures: readSql('stamp-departures', import.meta.url),
  changed: readSql('stamp-changed', import.meta.url),
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
    changed_id: foldId(term, stampCounter + 3n),
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

/** Records, during the pause, that no row up to this number is in doubt. */
async function confirm(
  { tables, databases, settings: { memoryBytesMax } }: SwapDependencies,
  term: Term,
  counter: bigint,
): Promise<void> {
  const foldId = (term.epoch << 32n) + counter
  const step = { term, foldId, pieces: 1, piece: 0, msMax: 10_000, memoryBytesMax }
  await tables.run(appendFoldStatement(databases, step, { folded: {}, campaigns: 0, elapsedMs: 0 }))
}

async function holdsEpoch({ tables, databases }: SwapDependencies, term: Term): Promise<boolean> {
  const [row] = await tables.rows<{ holds: number }>({
    query: `SELECT (SELECT max((epoch, holder)) FROM ${databases.model}.fold_epochs)
              = ({epoch:UInt64}, {holder:String}) AS holds`,
    query_params: { epoch: term.epoch.toString(), holder: term.holder },
  })
  return Number(row?.holds) === 1
}

/**
 * Whether a row of the shadow tables was stamped after the day of this pause. Swapped in, it would replace a row of a day that is
 * not closed yet (projector/fold/day-close.ts). The next pause closes the day.
 */
async function isOfNextDay({ tables, databases }: SwapDependencies, { until }: Term): Promise<boolean> {
  const [row] = await tables.rows<{ latest: number }>({
    query: `SELECT toUnixTimestamp64Milli(max(updated_at)) AS latest FROM ${shadowOf(databases).model}.campaigns`,
  })
  return until !== undefined && (row?.latest ?? 0) >= until
}

/** Pauses the fold. When it resolves, no other fold runs. Throws `FoldPauseLost` if another process was faster. */
async function pauseFold(dependencies: SwapDependencies): Promise<Term> {
  try {
    return await liveFoldWorker(dependencies).acquireLeadership()
  } catch (cause) {
    if (cause instanceof SupersededFoldWorker) throw new FoldPauseLost(cause.message, { cause })
    await release(dependencies, { isSettled: false })
    throw cause
  }
}

/** Ends the pause. If that fails, the pause expires. */
async function release(
  { tables, databases, run }: SwapDependencies,
  how: { isSettled: boolean },
): Promise<void> {
  // A permit that is left is useless: the statement that needs it has ended.
  await revokePermits(tables, databases).catch(() => undefined)
  await tables.run(takeEpochStatement(databases, releasedHolderName(run, how))).catch(() => undefined)
}
