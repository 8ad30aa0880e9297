/**
 * The fold pause: a lease under which no process folds, so that a rebuild can swap the tables.
 *
 * It is an epoch like any other, taken under a name that tells fold workers to wait. It ends when another epoch is taken:
 * by the rebuild, or by a fold worker once it has expired.
 */

/** The pause expires after this time, ms, by ClickHouse's clock or that of a waiting process. Then its holder was probably killed. */
export const foldPauseMsMax = 30_000

/** The holder's name begins with this while the pause lasts. */
export const pausePrefix = 'rebuild/'
const releasedPrefix = 'released/'

/** The holder name under which a run of a rebuild pauses the fold. */
export function pauseHolderName(run: string): string {
  return `${pausePrefix}${run}`
}

/** The holder name that ends the pause. */
export function releasedHolderName(run: string): string {
  return `${releasedPrefix}${run}`
}

export function isPauseHolder(holder: string): boolean {
  return holder.startsWith(pausePrefix)
}

/** Whether a rebuild took this epoch, during its pause or to end it. */
export function isRebuildHolder(holder: string): boolean {
  return isPauseHolder(holder) || holder.startsWith(releasedPrefix)
}
