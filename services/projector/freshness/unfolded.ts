/**
 * Knows since when the oldest event waits that is in the ledger, but not in the read tables yet.
 *
 * It reads the batch log, so it knows the batches of all projectors, also of those that have died. While ClickHouse is away, it
 * goes on with its last reading. So the age of what waits grows with the clock while folding is stuck. The campaigns in quarantine do
 * not count (fold/quarantine.ts).
 */
import { kept } from '../../runtime/async/kept.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Shard } from '../../tables/port.ts'
import type { LongRun } from '../fold/batch-conditions.ts'
import { readLongRuns, readPending } from '../fold/fold-progress.ts'

export interface Unfolded {
  /** Reads how far the fold is. While a reading runs, it waits for that one. Throws `TablesError`. */
  read(): Promise<void>
  /** Unix ms; `undefined` if nothing waits, as far as this process knows. */
  waitsSince(): number | undefined
}

/** `foldedUntil`: every batch that was appended before is folded, as this process has seen. Monotonic ms; `undefined`: not known. */
export function createUnfolded(
  shards: readonly Shard[],
  foldedUntil: () => number | undefined,
  { monotonicMs }: Pick<Runtime, 'monotonicMs'>,
): Unfolded {
  let last: { waitsSince: number | undefined; at: number } | undefined
  const followers = shards.map(createFollower)

  async function readAll(): Promise<void> {
    const at = monotonicMs()
    const pending = await Promise.all(followers.map(oldestOf => oldestOf()))
    const found = pending.filter(oldestAt => oldestAt !== undefined)
    last = { waitsSince: found.length > 0 ? Math.min(...found) : undefined, at }
  }

  return {
    // A reading that takes longer than a scrape is not begun twice.
    read: kept(readAll, { ms: 0 }, { monotonicMs }),

    waitsSince() {
      const until = foldedUntil()
      return !last || (until !== undefined && last.at < until) ? undefined : last.waitsSince
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
