/**
 * The fold of the live tables, paused and held by a rebuild: it takes the epoch as a fold worker does, under a name that tells the
 * others to wait (projector/fold/fold-pause.ts).
 */
import { SupersededFoldWorker } from '../../projector/fold/fold-epochs.ts'
import { isPauseHolder, pauseHolderName, releasedHolderName } from '../../projector/fold/fold-pause.ts'
import {
  epochHoldersStatement,
  holdsEpochStatement,
  type Term,
  takeEpochStatement,
} from '../../projector/fold/fold-statements.ts'
import {
  createFoldWorker,
  type FoldWorker,
  type FoldWorkerSettings,
} from '../../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../../projector/fold/running-folds.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { shadowOf } from '../build/shadow-tables.ts'
import { revokePermits } from './swap-permit.ts'

// How long a statement of the fold may still run.
const foldEndsMsMax = 60_000
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
    await release(dependencies)
    throw cause
  }
}

/** Ends the pause. If that fails, the pause expires. */
export async function release({ tables, databases, run }: HeldFoldDependencies): Promise<void> {
  // A permit that is left is useless: the statement that needs it has ended.
  await revokePermits(tables, databases).catch(() => undefined)
  await tables.run(takeEpochStatement(databases, releasedHolderName(run))).catch(() => undefined)
}

/**
 * Ends the pause of an earlier run that was killed, so that the fold does not have to wait until it expires. Must not be
 * called while a swap is half done.
 */
export async function releaseLeftPause(tables: Tables, databases: Databases, run: string): Promise<void> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  if (holders.some(({ holder }) => isPauseHolder(holder))) {
    await tables.run(takeEpochStatement(databases, releasedHolderName(run)))
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

function liveFoldWorker({ tables, databases, run, settings, ...rest }: HeldFoldDependencies): FoldWorker {
  return createFoldWorker({
    ...rest,
    tables,
    databases,
    holder: pauseHolderName(run),
    settings,
    respectsPauses: false,
    untilNoneRuns: () => untilNoFoldRuns(tables, databases, { ...rest, msMax: foldEndsMsMax }),
    epochFloor: () => highestEpoch(tables, databases),
  })
}

export async function holdsEpoch({ tables, databases }: HeldFoldDependencies, term: Term): Promise<boolean> {
  const [row] = await tables.rows<{ holds: boolean }>(holdsEpochStatement(databases, term))
  return Boolean(row?.holds)
}
