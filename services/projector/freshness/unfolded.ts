/**
 * Knows since when the oldest event waits that is in the ledger, but not in the read tables yet.
 *
 * It reads the batch log, so it knows the batches of all projectors, also of those that have died. While ClickHouse is away, it
 * goes on with what it knows: its last reading, and the batches that this process has written since. So the age of what waits
 * grows with the clock while folding is stuck. The campaigns in quarantine do not count (fold/quarantine.ts).
 */
import { kept } from '../../runtime/kept.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Shard } from '../../tables/port.ts'
import type { LongRun } from '../fold/batch-conditions.ts'
import { readLongRuns, readPending } from '../fold/fold-progress.ts'

export interface Unfolded {
  /** This process has appended a batch to the batch log. `oldestAt`: its oldest event entered the log then, Unix ms. */
  noteBatch(oldestAt: number): void
  /** Reads how far the fold is. While a reading runs, it waits for that one. Throws `TablesError`. */
  read(): Promise<void>
  /** Unix ms; `undefined` if nothing waits, as far as this process knows. */
  waitsSince(): number | undefined
}

// Beyond this, the two latest are merged under the older time: memory is bounded, and the age is never too small.
const notedMax = 10_000

/** `foldedUntil`: every batch that was appended before is folded, as this process has seen. Monotonic ms; `undefined`: not known. */
export function createUnfolded(
  shards: readonly Shard[],
  foldedUntil: () => number | undefined,
  { monotonicMs }: Pick<Runtime, 'monotonicMs'>,
): Unfolded {
  /** Times of the log, each with the moment at which the batch log was known to have such a batch. */
  let noted: { oldestAt: number; at: number }[] = []
  const followers = shards.map(createFollower)

  async function readAll(): Promise<void> {
    const at = monotonicMs()
    const pending = await Promise.all(followers.map(oldestOf => oldestOf()))
    const found = pending.filter(oldestAt => oldestAt !== undefined)
    const later = noted.filter(batch => batch.at >= at)
    noted = [...found.map(oldestAt => ({ oldestAt, at })), ...later]
  }

  return {
    noteBatch(oldestAt) {
      const at = monotonicMs()
      const last = noted.at(-1)
      if (!last || noted.length < notedMax) noted.push({ oldestAt, at })
      else noted[noted.length - 1] = { oldestAt: Math.min(oldestAt, last.oldestAt), at }
    },

    // A reading that takes longer than a scrape is not begun twice.
    read: kept(readAll, { ms: 0 }, { monotonicMs }),

    waitsSince() {
      const until = foldedUntil()
      if (until !== undefined) noted = noted.filter(({ at }) => at >= until)
      return noted.length === 0
        ? undefined
        : noted.reduce((min, { oldestAt }) => Math.min(min, oldestAt), Infinity)
    },
  }
}

/** Reads when the oldest pending event of a shard entered the log. */
function createFollower({ tables, databases }: Shard): () => Promise<number | undefined> {
  let longRuns: readonly LongRun[] = []
  let reads = 0
  return async () => {
    // An old reading costs a little more, and changes nothing.
    if (reads++ % 100 === 0) longRuns = await readLongRuns(tables, databases)
    return (await readPending(tables, databases, longRuns))?.oldestAt
  }
}
