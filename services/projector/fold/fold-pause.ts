/**
 * The fold pause: a lease under which no process folds, so that a rebuild can swap the tables.
 *
 * It is an epoch like any other, taken under a name that tells fold workers to wait. It ends when another epoch is taken:
 * by the rebuild, under a name that says whether all its statements have ended, or by a fold worker once it has expired.
 *
 * A stop is a pause that does not expire. The stamps of these tables were taken over by other tables (rebuild/take-stamps.ts). If
 * they were folded after that, their watermark would pass stamps that the other tables give later. Only a command ends a stop.
 */

/** The pause expires after this time, ms, by ClickHouse's clock. Then the process that held it was probably killed. */
export const foldPauseMsMax = 30_000

/** The holder's name begins with this while the pause lasts. */
export const pausePrefix = 'rebuild/'
/** The holder's name begins with this while the fold is stopped. */
export const stoppedPrefix = 'stopped/'
const releasedPrefix = 'released/'
const abandonedPrefix = 'abandoned/'

/** The holder name under which a run of a rebuild pauses the fold. */
export function pauseHolderName(run: string): string {
  return `${pausePrefix}${run}`
}

/** The holder name that ends the pause. `isSettled`: all statements of the rebuild are known to have ended. */
export function releasedHolderName(run: string, { isSettled }: { isSettled: boolean }): string {
  return `${isSettled ? releasedPrefix : abandonedPrefix}${run}`
}

/** The holder name under which a run stops the fold. */
export function stoppedHolderName(run: string): string {
  return `${stoppedPrefix}${run}`
}

export function isStoppedHolder(holder: string): boolean {
  return holder.startsWith(stoppedPrefix)
}

export function isPauseHolder(holder: string): boolean {
  return holder.startsWith(pausePrefix)
}

/** Whether a rebuild took this epoch, during its pause or to end it. */
export function isRebuildHolder(holder: string): boolean {
  return isPauseHolder(holder) || isReleasedHolder(holder) || holder.startsWith(abandonedPrefix)
}

/** Whether this holder left no statement running. */
export function isReleasedHolder(holder: string): boolean {
  return holder.startsWith(releasedPrefix)
}
