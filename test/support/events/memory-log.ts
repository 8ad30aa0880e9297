/** An event log in memory with several partitions. A test can change its assignment, which the journal never does. */
import { setTimeout } from 'node:timers/promises'
import type { Topic } from '../../../contracts/events/event.ts'
import {
  type Delivery,
  type EventReader,
  type LogRecord,
  type NewRecord,
  type Position,
  SupersededAssignment,
} from '../../../services/log/port.ts'

export type MemoryLog = ReturnType<typeof createMemoryLog>

interface Partition {
  topic: Topic
  partition: number
  records: (LogRecord | undefined)[]
  next: number
  committed: number
}

export function createMemoryLog() {
  const partitions = new Map<string, Partition>()
  const commits: { assignment: string; positions: readonly Position[] }[] = []
  let generation = 1
  let lost: number | undefined
  let delivered = 0
  let refused = 0
  let watermark = 0

  function partitionOf(topic: Topic, partition: number): Partition {
    const name = `${topic}/${partition}`
    const known = partitions.get(name) ?? { topic, partition, records: [], next: 0, committed: 0 }
    partitions.set(name, known)
    return known
  }

  function held(): Partition[] {
    return [...partitions.values()].filter(({ partition }) => partition !== lost)
  }

  function take(recordsMax: number): Delivery {
    const records: LogRecord[] = []
    const positions: Position[] = []
    for (const partition of held()) {
      const from = partition.next
      while (partition.next < partition.records.length && records.length < recordsMax) {
        const record = partition.records[partition.next]
        if (record) records.push(record)
        partition.next++
      }
      if (partition.next > from) {
        positions.push({ topic: partition.topic, partition: partition.partition, next: partition.next })
      }
    }
    delivered += records.length
    return { records, positions, assignment: String(generation) }
  }

  function assign(lostPartition: number | undefined): void {
    generation++
    lost = lostPartition
    for (const partition of partitions.values()) partition.next = partition.committed
  }

  const reader: EventReader = {
    log: 'memory',
    async poll({ recordsMax, waitMsMax }, signal) {
      const deadline = performance.now() + waitMsMax
      for (;;) {
        const delivery = take(signal.aborted ? 0 : recordsMax)
        const waitMs = Math.min(5, deadline - performance.now())
        if (delivery.positions.length > 0 || waitMs <= 0 || signal.aborted) return delivery
        await setTimeout(waitMs, undefined, { signal }).catch(() => {})
      }
    },
    async commit(assignment, positions) {
      if (assignment !== String(generation)) {
        refused++
        throw new SupersededAssignment(`${assignment} is not ${generation}`)
      }
      commits.push({ assignment, positions })
      for (const { topic, partition, next } of positions) partitionOf(topic, partition).committed = next
    },
    async restart() {
      assign(lost)
    },
    async lag() {
      return held().map(({ topic, partition, committed, records }) => ({
        topic,
        partition,
        committed,
        end: records.length,
      }))
    },
    leads: () => true,
    async rememberWatermark(more) {
      watermark = Math.max(watermark, more)
      return watermark
    },
    async close() {},
  }

  return {
    reader,
    append(records: readonly NewRecord[], { partition = 0, appendedAt = 1_000 } = {}): void {
      for (const record of records) {
        const { records: kept } = partitionOf(record.topic, partition)
        kept.push({ ...record, partition, offset: kept.length, appendedAt })
      }
    },
    /** Skips offsets, like a compacted or aborted part of a log: the position moves, and there is nothing to read. */
    skip(topic: Topic, partition: number, count: number): void {
      partitionOf(topic, partition).records.push(...Array.from({ length: count }, () => undefined))
    },
    /** Gives the partitions to a new assignment, which continues from the committed offsets. */
    reassign: () => assign(undefined),
    /** Like `reassign`, but until the next `reassign` this partition belongs to a member whose process has ended. */
    lose: (partition: number) => assign(partition),
    /** The end of every partition. */
    ends: (): Position[] =>
      [...partitions.values()].map(({ topic, partition, records }) => ({
        topic,
        partition,
        next: records.length,
      })),
    /** By `topic/partition`. */
    committed: (): Record<string, number> =>
      Object.fromEntries([...partitions].map(([name, { committed }]) => [name, committed])),
    /** Every commit that was accepted, in order. */
    commits,
    /** How many commits were refused because their assignment was superseded. */
    refusedCommits: () => refused,
    /** Records that were delivered, for the first time or again. */
    delivered: () => delivered,
  }
}
