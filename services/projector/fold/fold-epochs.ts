/**
 * Epochs: the fencing tokens of the fold. Epochs only grow. A fold worker may write only while it alone holds the
 * highest epoch.
 */
import type { Databases, Tables } from '../../tables/port.ts'
import { foldPauseMsMax, isPauseHolder } from './fold-pause.ts'
import { epochHoldersStatement, type Term, takeEpochStatement } from './fold-statements.ts'

export interface EpochDependencies {
  tables: Tables
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  /** Whether the fold pause of another process (`fold-pause.ts`) counts. For a rebuild it does not: only one runs at a time. */
  respectsPauses: boolean
  /** For how long this process has seen this pause, ms, by its own clock. */
  pausedMs: (pause: EpochHolder) => number
  /**
   * Repairs what an expired fold pause may have left half done. Runs before the epoch is taken if the pause is seen, and always
   * after it: the process that took over from the pause may have failed or died before its own repair.
   */
  afterExpiredPause: () => Promise<void>
  /** The new epoch is higher than this one. */
  epochFloor: () => Promise<bigint>
  /** Waits before the next attempt. Each wait is longer than the one before. */
  backoff: (attempt: number) => Promise<void>
}

/** Another fold worker took over. This one has written nothing since then, and stops. */
export class SupersededFoldWorker extends Error {
  override name = 'SupersededFoldWorker'
}

/** A rebuild has paused the fold while it swaps the tables. This is not a failure, and it is over in a moment. */
export class FoldPaused extends Error {
  override name = 'FoldPaused'
}

export interface EpochHolder {
  epoch: string
  holder: string
  ageMs: number
}

const attemptsMax = 6

/**
 * Takes the next epoch. If two processes take an epoch at the same time, they get the same number. Both then try again, until one is alone.
 * Throws `FoldPaused`. Throws `SupersededFoldWorker` if it was never alone.
 */
export async function takeEpoch(dependencies: EpochDependencies): Promise<Term> {
  const { tables, databases, holder, respectsPauses, pausedMs, afterExpiredPause, epochFloor, backoff } =
    dependencies
  const readHolders = () => tables.rows<EpochHolder>(epochHoldersStatement(databases))
  const pauses = (await readHolders()).filter(({ holder }) => isPauseHolder(holder))
  // If ClickHouse's clock stepped back, only this process's own clock ends the pause of a killed rebuild in time.
  const lasts = (pause: EpochHolder) => Math.max(pause.ageMs, pausedMs(pause)) < foldPauseMsMax
  if (respectsPauses && pauses.some(lasts)) {
    throw new FoldPaused('a rebuild is swapping the tables')
  }
  if (pauses.length > 0) await afterExpiredPause()
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    await tables.run(takeEpochStatement(databases, holder, await epochFloor()))
    const [only, ...others] = await readHolders()
    if (only && others.length === 0 && only.holder === holder) {
      // The rebuild may have looked at the epoch before it was taken. From now on it sees that the pause is lost.
      await afterExpiredPause()
      return { epoch: BigInt(only.epoch), holder }
    }
    await backoff(attempt)
  }
  throw new SupersededFoldWorker(`${holder} could not take an epoch alone in ${attemptsMax} attempts`)
}
