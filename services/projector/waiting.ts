/**
 * What waits, and since when: records that are not committed, and events that are not folded.
 *
 * Of a record that was read, the log's own time is known. A reader that is stuck before it reads knows no such time: then the
 * time counts at which the end of the partition was first seen beyond the committed offset. So the age of what waits grows
 * with the clock, also while the log or ClickHouse is away.
 */
import type { Topic } from '../../contracts/events/event.ts'
import {
  type Delivery,
  type EventReader,
  type PartitionLag,
  type Position,
  partitionName,
} from '../log/port.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { presentOf } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { readPending } from './fold/fold-progress.ts'

export interface OldestRecord {
  topic: Topic
  partition: number
  /** Unix ms; `undefined` if nothing waits. */
  waitsSince: number | undefined
}

interface Waiting {
  topic: Topic
  partition: number
  /** Deliveries that are not committed, in their order: the offset of the first record, and the oldest time. */
  taken: { first: number; oldestAt: number }[]
  /** Ends of the partition, each with the time when it was first seen. Only those beyond the committed offset. */
  ends: { end: number; seenAt: number }[]
}

// Beyond this, the two latest are merged under the older time: memory is bounded, and the age is never too small.
const keptMax = 10_000

/** Watches a reader. `now`: Unix ms. */
export function watchUncommitted(reader: EventReader, now: () => number) {
  const partitions = new Map<string, Waiting>()
  let assignment: string | undefined

  function waitingOf({ topic, partition }: { topic: Topic; partition: number }): Waiting {
    const name = partitionName({ topic, partition })
    const known = partitions.get(name) ?? { topic, partition, taken: [], ends: [] }
    partitions.set(name, known)
    return known
  }

  function noteTaken(delivery: Delivery): void {
    if (delivery.assignment !== assignment) {
      // What an earlier assignment read is read again, here or by another process.
      for (const waiting of partitions.values()) waiting.taken = []
      assignment = delivery.assignment
    }
    let last: { waiting: Waiting; of: { first: number; oldestAt: number } } | undefined
    for (const { topic, partition, offset, appendedAt } of delivery.records) {
      if (last?.waiting.topic !== topic || last.waiting.partition !== partition) {
        const waiting = waitingOf({ topic, partition })
        last = { waiting, of: { first: offset, oldestAt: appendedAt } }
        addTaken(waiting, last.of)
      }
      if (appendedAt < last.of.oldestAt) last.of.oldestAt = appendedAt
    }
  }

  function noteCommitted(positions: readonly Position[]): void {
    for (const position of positions) {
      const waiting = waitingOf(position)
      waiting.taken = waiting.taken.filter(({ first }) => first >= position.next)
      waiting.ends = waiting.ends.filter(({ end }) => end > position.next)
    }
  }

  function noteLag(lag: readonly PartitionLag[]): void {
    const present = new Set(lag.map(partitionName))
    for (const name of partitions.keys()) if (!present.has(name)) partitions.delete(name)
    for (const { committed, end, ...place } of lag) {
      const waiting = waitingOf(place)
      // Another process may have committed them, if it had the partition in between.
      waiting.taken = waiting.taken.filter(({ first }) => first >= committed)
      waiting.ends = waiting.ends.filter(seen => seen.end > committed)
      const last = waiting.ends.at(-1)
      if (end <= committed || (last && last.end >= end)) continue
      if (last && waiting.ends.length >= keptMax) last.end = end
      else waiting.ends.push({ end, seenAt: now() })
    }
  }

  const watched: EventReader = {
    ...reader,
    async poll(bounds, signal) {
      const delivery = await reader.poll(bounds, signal)
      noteTaken(delivery)
      return delivery
    },
    async commit(of, positions) {
      await reader.commit(of, positions)
      if (of === assignment) noteCommitted(positions)
    },
    async lag() {
      const lag = await reader.lag()
      noteLag(lag)
      return lag
    },
  }

  return {
    reader: watched,
    /** One for each partition of the present assignment, as far as it is known. It makes no request, so it cannot fail. */
    oldest: (): OldestRecord[] =>
      [...partitions.values()].map(({ topic, partition, taken, ends }) => ({
        topic,
        partition,
        waitsSince: taken.length > 0 ? Math.min(...taken.map(of => of.oldestAt)) : ends[0]?.seenAt,
      })),
  }
}

function addTaken({ taken }: Waiting, added: { first: number; oldestAt: number }): void {
  const last = taken.at(-1)
  if (!last || taken.length < keptMax) {
    taken.push(added)
    return
  }
  added.oldestAt = Math.min(added.oldestAt, last.oldestAt)
  taken[taken.length - 1] = added
}

/**
 * Knows since when the oldest event waits that is in the ledger, but not in the read tables yet.
 *
 * It reads the batch log, so it knows the batches of all projectors, also of those that have died. While ClickHouse is away, it
 * goes on with its last reading. So the age of what waits grows with the clock while folding is stuck. The campaigns in quarantine do
 * not count (fold/quarantine.ts).
 */

export type Unfolded = ReturnType<typeof createUnfolded>

/** `foldedUntil`: every batch that was appended before is folded, as this process has seen. Monotonic ms; `undefined`: not known. */
export function createUnfolded(
  shards: readonly Shard[],
  foldedUntil: () => number | undefined,
  { monotonicMs }: Pick<Runtime, 'monotonicMs'>,
) {
  let last: { waitsSince: number | undefined; at: number } | undefined

  return {
    /** Reads how far the fold is. Throws `TablesError`. */
    async read(): Promise<void> {
      const at = monotonicMs()
      // Both statements of a reading ask the same generation.
      const pending = await Promise.all(
        shards.map(({ tables, databases }) => readPending(tables, presentOf(databases))),
      )
      const found = pending.flatMap(of => of?.oldestAt ?? [])
      last = { waitsSince: found.length > 0 ? Math.min(...found) : undefined, at }
    },

    /** Unix ms; `undefined` if nothing waits, as far as this process knows. */
    waitsSince(): number | undefined {
      const until = foldedUntil()
      return !last || (until !== undefined && last.at < until) ? undefined : last.waitsSince
    },
  }
}
