/**
 * The fold of the live tables, paused and held by a rebuild: it takes the epoch as a fold worker does, under a name that tells the
 * others to wait (projector/fold/fold-pause.ts).
 */
import { SupersededFoldWorker } from '../projector/fold/fold-epochs.ts'
import { isPauseHolder, pauseHolderName, releasedHolderName } from '../projector/fold/fold-pause.ts'
import {
  appendFoldStatement,
  epochHoldersStatement,
  type Term,
  takeEpochStatement,
} from '../projector/fold/fold-statements.ts'
import { createFoldWorker, type FoldWorker, type FoldWorkerSettings } from '../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../projector/fold/running-folds.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { shadowOf } from './shadow-tables.ts'
import { revokePermits } from './swap-permit.ts'

// Higher than any number that the fold worker's own statements get in this epoch.
export const stampCounter = 2n ** 31n

export interface HeldFoldDependencies {
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
  /** The pause takes an epoch above this one. Default: above those of the shadow tables. */
  epochFloor?: () => Promise<bigint>
}

/** The pause was lost, or lasted too long to be relied on. Nothing was swapped; the swap may be tried again. */
export class FoldPauseLost extends Error {
  override name = 'FoldPauseLost'
}

/** Pauses the fold. When it resolves, no other fold runs. Throws `FoldPauseLost` if another process was faster. */
export async function pauseFold(dependencies: HeldFoldDependencies): Promise<Term> {
  try {
    return await liveFoldWorker(dependencies).acquireLeadership()
  } catch (cause) {
    if (cause instanceof SupersededFoldWorker) throw new FoldPauseLost(cause.message, { cause })
    await release(dependencies, { isSettled: false })
    throw cause
  }
}

/** Ends the pause. If that fails, the pause expires. */
export async function release(
  { tables, databases, run }: HeldFoldDependencies,
  how: { isSettled: boolean },
): Promise<void> {
  // A permit that is left is useless: the statement that needs it has ended.
  await revokePermits(tables, databases).catch(() => undefined)
  await tables.run(takeEpochStatement(databases, releasedHolderName(run, how))).catch(() => undefined)
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

/** The highest epoch in the live and the shadow tables. */
export async function highestEpoch(tables: Tables, databases: Databases): Promise<bigint> {
  const [row] = await tables.rows<{ epoch: string }>({
    query: `SELECT toString(greatest(
              (SELECT max(epoch) FROM ${databases.model}.fold_epochs),
              (SELECT max(epoch) FROM ${shadowOf(databases).model}.fold_epochs))) AS epoch`,
  })
  return BigInt(row?.epoch ?? '0')
}

function liveFoldWorker({
  tables,
  databases,
  run,
  settings,
  epochFloor,
  ...rest
}: HeldFoldDependencies): FoldWorker {
  return createFoldWorker({
    ...rest,
    tables,
    databases,
    holder: pauseHolderName(run),
    settings,
    // A pause of a killed run does not count: only one rebuild runs at a time.
    respectsPause: () => false,
    settle: () => untilNoFoldRuns(tables, databases, { ...rest, msMax: 2 * settings.horizonMs }),
    epochFloor: epochFloor ?? (() => highestEpoch(tables, databases)),
  })
}

/** Records, during the pause, that no row up to this number is in doubt. */
export async function confirm(
  { tables, databases, settings: { memoryBytesMax } }: HeldFoldDependencies,
  term: Term,
  counter: bigint,
): Promise<void> {
  const foldId = (term.epoch << 32n) + counter
  const step = { term, foldId, pieces: 1, piece: 0, msMax: 10_000, memoryBytesMax }
  await tables.run(appendFoldStatement(databases, step, { folded: {}, campaigns: 0, elapsedMs: 0 }))
}

export async function holdsEpoch({ tables, databases }: HeldFoldDependencies, term: Term): Promise<boolean> {
  const [row] = await tables.rows<{ holds: number }>({
    query: `SELECT (SELECT max((epoch, holder)) FROM ${databases.model}.fold_epochs)
              = ({epoch:UInt64}, {holder:String}) AS holds`,
    query_params: { epoch: term.epoch.toString(), holder: term.holder },
  })
  return Number(row?.holds) === 1
}
