/**
 * Epochs: the fencing tokens of the fold. Epochs only grow. A fold worker may write only while it alone holds the
 * highest epoch.
 */
import type { Databases, Statement } from '../../tables/port.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'

/** The term of a leader: which fold worker folds, and under which epoch. */
export interface Term {
  epoch: bigint
  holder: string
}

/** Another fold worker took over. This one has written nothing since then, and stops. */
export class SupersededFoldWorker extends Error {
  override name = 'SupersededFoldWorker'
}

/** A promotion holds the fold, or the generation is not the current one any more. This is no failure, and it is over in a moment. */
export class FoldPaused extends Error {
  override name = 'FoldPaused'
}

/** How often a process tries to be alone with the next epoch. */
export const takesMax = 6

/**
 * Takes the next epoch. If two processes take an epoch at the same time, they get the same number. Both then try again, until one is alone.
 * `backoff`: waits, each time for longer. Throws `FoldPaused`. Throws `SupersededFoldWorker` if it was never alone.
 */
export async function takeEpoch(
  { tables, databases, holder, attempt: own, isGivenUp, epochFloor }: FoldWorkerDependencies,
  backoff: (take: number) => Promise<void>,
): Promise<Term> {
  const readHolders = () => tables.rows<{ epoch: string; holder: string }>(epochHoldersStatement(databases))
  const [before] = await readHolders()
  const standing = before && attemptOf(before.holder)
  if (own === undefined && standing !== undefined && !(await isGivenUp?.(standing))) throw held()
  const taker = own === undefined ? { past: before?.holder ?? '' } : { attempt: own }
  for (let take = 1; take <= takesMax; take++) {
    await tables.run(takeEpochStatement(databases, holder, { floor: await epochFloor?.(), ...taker }))
    const [first, ...others] = await readHolders()
    if (first && others.length === 0 && first.holder === holder) return { epoch: BigInt(first.epoch), holder }
    const holding = first && attemptOf(first.holder)
    if (own === undefined && holding !== undefined && holding !== standing) throw held()
    await backoff(take)
  }
  throw new SupersededFoldWorker(`${holder} could not take an epoch alone in ${takesMax} tries`)
}

export function held(): FoldPaused {
  return new FoldPaused('a promotion holds the fold')
}

/**
 * A promotion holds the fold of the generation that it began from: it takes an epoch under a name by which the fold workers know it.
 *
 * They wait until another generation is current, or until the attempt is given up (generations/attempts.ts). The name sorts after all
 * others, so of two that take the same epoch at once the promotion has it. A statement that takes an epoch has that as its own
 * condition, so none passes a promotion, however late it comes.
 */
const promotionPrefix = '~promotion/'

/** The name under which this attempt holds the fold. */
export function promotionHolder(attempt: number): string {
  return `${promotionPrefix}${attempt}`
}

/** The name under which this attempt folds the generation that it builds. Projectors do not wait for that. */
export function buildHolder(attempt: number): string {
  return `build/${attempt}`
}

/** The attempt that holds the fold under this name, if one does. */
export function attemptOf(holder: string): number | undefined {
  return holder.startsWith(promotionPrefix) ? Number(holder.slice(promotionPrefix.length)) : undefined
}

/**
 * Takes the next epoch, higher than `floor`. Two processes that do so at the same time get the same epoch:
 * `epochHoldersStatement` shows it. A fold worker's statement writes nothing while a promotion holds the fold, unless that promotion is
 * `past`: one that was given up. An attempt's statement writes nothing once a later attempt has taken any epoch here: a process that
 * wakes up after that would end the work of the later one.
 */
export function takeEpochStatement(
  databases: Databases,
  holder: string,
  { floor = 0n, ...taker }: { floor?: bigint | undefined } & ({ past: string } | { attempt: number }),
): Statement {
  const epochs = `${databases.ledger}.fold_epochs`
  const last = 'argMax(taken.holder, (taken.epoch, taken.holder))'
  const attempts = `toUInt64OrZero(extract(taken.holder, '^(?:${promotionPrefix}|build/)([0-9]+)$'))`
  return {
    query: `INSERT INTO ${epochs} (epoch, holder)
            SELECT greatest(max(taken.epoch), {floor:UInt64}) + 1, {holder:String} FROM ${epochs} AS taken
            HAVING ${
              'past' in taker
                ? `NOT startsWith(${last}, '${promotionPrefix}') OR ${last} = {past:String}`
                : `max(${attempts}) <= {attempt:UInt64}`
            }
            SETTINGS async_insert = 0`,
    query_params: { holder, floor: floor.toString(), ...taker },
  }
}

/** The holder of the highest epoch, a promotion first. Gives more than one row if several processes took the epoch at the same time. */
export function epochHoldersStatement(databases: Databases): Statement {
  return {
    query: `SELECT toString(taken.epoch) AS epoch, holder FROM ${databases.ledger}.fold_epochs AS taken
            WHERE taken.epoch = (SELECT max(epoch) FROM ${databases.ledger}.fold_epochs) ORDER BY holder DESC`,
  }
}

/** Whether a term still has the highest epoch, alone: one row {holds}. */
export function holdsEpochStatement({ ledger }: Databases, { epoch, holder }: Term): Statement {
  return {
    query: `SELECT (SELECT max((epoch, holder)) FROM ${ledger}.fold_epochs) = ({epoch:UInt64}, {holder:String}) AS holds`,
    query_params: { epoch: epoch.toString(), holder },
  }
}
