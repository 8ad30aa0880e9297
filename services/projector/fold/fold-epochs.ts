/**
 * Epochs: the fencing tokens of the fold. Epochs only grow. A fold worker may write only while it alone holds the
 * highest epoch.
 */
import type { Databases, Tables } from '../../shared/tables/port.ts'
import { foldPauseMsMax, isPauseHolder, isReleasedHolder, isStoppedHolder } from './fold-pause.ts'
import { epochHoldersStatement, type Term, takeEpochStatement } from './fold-statements.ts'

export interface EpochDependencies {
  tables: Tables
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  /** Whether this holder's fold pause (`fold-pause.ts`) still counts. It does not if its process is known to be dead. */
  respectsPause: (holder: string) => boolean
  /**
   * Repairs what an expired fold pause may have left half done. Runs before the epoch is taken if the pause is seen, and always
   * after it: the process that took over from the pause may have failed or died before its own repair.
   */
  afterExpiredPause: () => Promise<void>
  /** The new epoch is higher than this one. */
  epochFloor: () => Promise<bigint>
  /** Takes the epoch also while the fold is stopped. Only for what stops it. Default: false. */
  overridesStop?: boolean
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

/** The fold is stopped until a command releases it: other tables have taken over the stamps of these. */
export class FoldStopped extends FoldPaused {
  override name = 'FoldStopped'

  constructor() {
    super(
      'other tables have taken over the stamps of these (pledgeview rebuild stamps), so these must not be folded. If query processes ' +
        'shall return to these tables, run pledgeview rebuild stamps --release with their settings',
    )
  }
}

interface EpochHolder {
  epoch: string
  holder: string
  ageMs: number
}

const attemptsMax = 6

/**
 * Takes the next epoch. `isSettled` is true if the holder before reported that none of its statements runs any more.
 * If two processes take an epoch at the same time, they get the same number. Both then try again, until one is alone.
 * Throws `FoldPaused`, also `FoldStopped`. Throws `SupersededFoldWorker` if it was never alone.
 */
export async function takeEpoch(dependencies: EpochDependencies): Promise<Term & { isSettled: boolean }> {
  const { tables, databases, holder, respectsPause, afterExpiredPause, epochFloor, backoff } = dependencies
  const { overridesStop = false } = dependencies
  const checkStop = (holders: readonly EpochHolder[]) => {
    if (!overridesStop && holders.some(({ holder }) => isStoppedHolder(holder))) throw new FoldStopped()
  }
  const readHolders = () => tables.rows<EpochHolder>(epochHoldersStatement(databases))
  const before = await readHolders()
  checkStop(before)
  const pauses = before.filter(({ holder }) => isPauseHolder(holder))
  if (pauses.some(({ holder, ageMs }) => respectsPause(holder) && ageMs < foldPauseMsMax)) {
    throw new FoldPaused('a rebuild is swapping the tables')
  }
  if (pauses.length > 0) await afterExpiredPause()
  const released = before.find(({ holder }) => isReleasedHolder(holder))
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    await tables.run(takeEpochStatement(databases, holder, await epochFloor(), { overridesStop }))
    const holders = await readHolders()
    checkStop(holders)
    const [only, ...others] = holders
    if (only && others.length === 0 && only.holder === holder) {
      // The rebuild may have looked at the epoch before it was taken. From now on it sees that the pause is lost.
      await afterExpiredPause()
      // If another process held an epoch in between, it may have folded.
      const isNext = released !== undefined && BigInt(only.epoch) === BigInt(released.epoch) + 1n
      return { epoch: BigInt(only.epoch), holder, isSettled: isNext }
    }
    await backoff(attempt)
  }
  throw new SupersededFoldWorker(`${holder} could not take an epoch alone in ${attemptsMax} attempts`)
}
