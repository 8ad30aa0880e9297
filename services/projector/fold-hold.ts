/**
 * A hold of the fold: for the moment in which one generation of the tables is put in the place of another, nobody folds.
 *
 * It is an epoch like any other, taken under a name that tells folders to leave it alone. It ends when another epoch is
 * taken: by who held it, under a name that says that all its statements have ended, or by a folder once it is too old.
 */

/** A hold ends by itself after this time, ms, by ClickHouse's clock: who held it was killed. */
export const holdMsMax = 30_000

/** What the name of a hold begins with. */
export const holdPrefix = 'rebuild/'
const releasedPrefix = 'released/'
const abandonedPrefix = 'abandoned/'

/** The name under which a run of a rebuild holds the fold. */
export function holdName(run: string): string {
  return `${holdPrefix}${run}`
}

/** The name under which it lets go again. `isSettled`: every statement that it ran is known to have ended. */
export function releaseName(run: string, { isSettled }: { isSettled: boolean }): string {
  return `${isSettled ? releasedPrefix : abandonedPrefix}${run}`
}

export function isHold(holder: string): boolean {
  return holder.startsWith(holdPrefix)
}

/** Whether the holder before left no statement running. */
export function isReleased(holder: string): boolean {
  return holder.startsWith(releasedPrefix)
}
