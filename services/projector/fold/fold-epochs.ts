/**
 * Epochs: the fencing tokens of the fold. Epochs only grow. A fold worker may write only while it alone holds the
 * highest epoch.
 */
import { epochHoldersStatement, type Term, takeEpochStatement } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { attemptOf } from './promotion.ts'

/** Another fold worker took over. This one has written nothing since then, and stops. */
export class SupersededFoldWorker extends Error {
  override name = 'SupersededFoldWorker'
}

/** A promotion holds the fold, or the generation is not the current one any more. This is no failure, and it is over in a moment. */
export class FoldPaused extends Error {
  override name = 'FoldPaused'
}

export interface EpochHolder {
  epoch: string
  holder: string
}

const attemptsMax = 6

/**
 * Takes the next epoch. If two processes take an epoch at the same time, they get the same number. Both then try again, until one is alone.
 * `backoff`: waits, each time for longer. Throws `FoldPaused`. Throws `SupersededFoldWorker` if it was never alone.
 */
export async function takeEpoch(
  {
    tables,
    databases,
    holder,
    isAttempt = false,
    isGivenUp = async () => false,
    epochFloor = async () => 0n,
  }: FoldWorkerDependencies,
  backoff: (attempt: number) => Promise<void>,
): Promise<Term> {
  const readHolders = () => tables.rows<EpochHolder>(epochHoldersStatement(databases))
  const [before] = await readHolders()
  const standing = before && attemptOf(before.holder)
  if (!isAttempt && standing !== undefined && !(await isGivenUp(standing))) throw held()
  const past = isAttempt ? undefined : (before?.holder ?? '')
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    await tables.run(takeEpochStatement(databases, holder, { floor: await epochFloor(), past }))
    const [first, ...others] = await readHolders()
    if (first && others.length === 0 && first.holder === holder) return { epoch: BigInt(first.epoch), holder }
    if (!isAttempt && first && first.holder !== before?.holder && attemptOf(first.holder) !== undefined)
      throw held()
    await backoff(attempt)
  }
  throw new SupersededFoldWorker(`${holder} could not take an epoch alone in ${attemptsMax} attempts`)
}

function held(): FoldPaused {
  return new FoldPaused('a promotion holds the fold')
}
