/**
 * Stops the fold of tables whose stamps are taken over (take-stamps.ts), and releases it again.
 *
 * While it is stopped, these tables and their stamp floor stand still, whichever projector starts: it goes on to write the ledger,
 * and waits with the fold (projector/fold/fold-pause.ts). Projectors of a version that does not know the stop take no notice of
 * it; `isStopped` then says so.
 */
import { SupersededFoldWorker } from '../projector/fold/fold-epochs.ts'
import { isStoppedHolder, releasedHolderName, stoppedHolderName } from '../projector/fold/fold-pause.ts'
import { epochHoldersStatement, takeEpochStatement } from '../projector/fold/fold-statements.ts'
import { createFoldWorker, type FoldWorkerSettings } from '../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../projector/fold/running-folds.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Shard } from '../shared/tables/port.ts'

export interface StopDependencies {
  /** Names this run; unique. */
  run: string
  settings: FoldWorkerSettings
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

/**
 * Stops the fold as a new leader would take it over. When it resolves, no statement of a fold runs, no row is in doubt, and the
 * floor is at or above every stamp. Throws if another process is always faster, or what ClickHouse throws.
 */
export async function stopFold({ tables, databases }: Shard, dependencies: StopDependencies): Promise<void> {
  const { run, settings, ...time } = dependencies
  const foldWorker = createFoldWorker({
    ...time,
    tables,
    databases,
    settings,
    holder: stoppedHolderName(run),
    overridesStop: true,
    respectsPause: () => false,
    settle: () => untilNoFoldRuns(tables, databases, { ...time, msMax: 2 * settings.horizonMs }),
  })
  try {
    await foldWorker.acquireLeadership()
  } catch (error) {
    if (!(error instanceof SupersededFoldWorker)) throw error
    throw new Error('another process folds the other tables: stop their projectors', { cause: error })
  }
}

/** Whether the fold is stopped; with `run`: by this run. */
export async function isStopped({ tables, databases }: Shard, run?: string): Promise<boolean> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  return (
    holders.length > 0 &&
    holders.every(({ holder }) =>
      run === undefined ? isStoppedHolder(holder) : holder === stoppedHolderName(run),
    )
  )
}

/**
 * Ends the stop, if there is one, also one that was killed before it had its epoch alone: projectors wait for that, too. Resolves with
 * whether there was one.
 */
export async function releaseFold({ tables, databases }: Shard, run: string): Promise<boolean> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  if (!holders.some(({ holder }) => isStoppedHolder(holder))) return false
  const holder = releasedHolderName(run, { isSettled: false })
  await tables.run(takeEpochStatement(databases, holder, 0n, { overridesStop: true }))
  return true
}
