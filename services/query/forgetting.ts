/**
 * Forgets what a query process keeps of campaigns: answers, lists, rows, the list index, and the paths of requests.
 *
 * Promise: what a reader may no longer see leaves the memory of this process within five minutes, whether requests arrive or not,
 * and whether ClickHouse answers or not. An answer that may be cached for longer leaves half a minute after it expires. After
 * `pledgeview purge` answers and rows leave at once, and what the list index has with its next refresh, but for the ids of lists: the
 * pages of a walk come from one snapshot.
 */
import { type Rounds, startRounds } from '../runtime/async/rounds.ts'
import { oncePerMinute } from '../runtime/ops/logger.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { purgeLookMs, purgeLookMsMax, readPurges } from '../tables/schema/identity.ts'

/** Something that keeps content of campaigns. */
export interface Keeper {
  /** Forgets what is older than `keptMsMax`, or has expired. */
  forgetOld(): void
  /** Forgets everything. `purges`: how many purges there were. */
  forgetAll(purges: number): void
}

/** Content is kept for so long after it was read. With `forgetMs` this is below five minutes. */
export const keptMsMax = 240_000
/** Pause between two searches for what is too old. */
export const forgetMs = 30_000

/**
 * Forgets until it is closed. `tables`: without the limits of requests, so that a look does not wait for a statement of theirs. For the
 * same reason it waits for no keeper.
 */
export function startForgetting(
  keepers: readonly Keeper[],
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  { monotonicMs, sleep, logger }: Pick<Runtime, 'monotonicMs' | 'sleep' | 'logger'>,
): Rounds {
  let purges = 0
  let forgotAt = monotonicMs()
  const onError = oncePerMinute(
    error =>
      logger.warn({ err: error }, 'it is not known whether there was a purge; it looks again every second'),
    { monotonicMs },
  )

  async function round(stopping: AbortSignal): Promise<void> {
    if (monotonicMs() - forgotAt >= forgetMs) {
      forgotAt = monotonicMs()
      for (const keeper of keepers) keeper.forgetOld()
    }
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(purgeLookMsMax)])
    const found = await readPurges({ rows: statement => tables.rows(statement, { signal }) }, databases)
    if (found === purges) return
    for (const keeper of keepers) keeper.forgetAll(found)
    purges = found
  }

  return startRounds(round, { pauseMs: purgeLookMs, onError, sleep })
}
