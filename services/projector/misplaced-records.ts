/**
 * Records that are not in the partition of their key. If a key has records in two partitions, compaction never removes
 * the state in one of them, although the tombstone is in the other: a later rebuild would restore what was deleted.
 *
 * They are projected like all others, and named: in the log, the metrics, and the projector log, which `status` reads.
 */
import type { Topic } from '../../contracts/events/event.ts'
import type { LogRecord } from '../log/port.ts'
import type { ProjectorNote } from './projector-log.ts'

export interface MisplacedRecords {
  count: number
  byTopic: Partial<Record<Topic, number>>
  /** The first ones, as `topic/partition key`. */
  examples: string[]
}

export interface MisplacedReporterDependencies {
  /** Writes to the program's log. */
  warn: (found: MisplacedRecords, message: string) => void
  /** Writes to the projector log. It is called once at a time. */
  write: (note: ProjectorNote) => Promise<void>
  onFailure: (error: Error) => void
  monotonicMs: () => number
}

export interface MisplacedReporter {
  /** Reports them: the first ones at once, and later ones once a minute. */
  note(found: MisplacedRecords): void
  /** Reports what is left. */
  close(): Promise<void>
}

const examplesMax = 10
const keyLengthMax = 100
// Of an API key, this much identifies it.
const apiKeyLengthMax = 16
const reportMsMin = 60_000

export function noMisplacedRecords(): MisplacedRecords {
  return { count: 0, byTopic: {}, examples: [] }
}

/** Adds a record to `to`. */
export function addMisplaced(to: MisplacedRecords, { topic, partition, key }: LogRecord): void {
  to.count++
  to.byTopic[topic] = (to.byTopic[topic] ?? 0) + 1
  if (to.examples.length >= examplesMax) return
  const text = Buffer.from(key ?? []).toString()
  to.examples.push(
    `${topic}/${partition} ${text.slice(0, topic === 'api-keys' ? apiKeyLengthMax : keyLengthMax)}`,
  )
}

export function createMisplacedReporter(dependencies: MisplacedReporterDependencies): MisplacedReporter {
  const { warn, write, onFailure, monotonicMs } = dependencies
  let pending = noMisplacedRecords()
  let reportedAt = Number.NEGATIVE_INFINITY
  let writing: Promise<void> = Promise.resolve()

  function report(): void {
    const found = pending
    pending = noMisplacedRecords()
    reportedAt = monotonicMs()
    warn(
      found,
      'records are not in the partition of their key, so compaction cannot remove what was deleted: set the ' +
        "producer's partitioner to murmur2 (contracts/events)",
    )
    writing = writing
      .then(() => write({ kind: 'misplaced', detail: { records: found.count, examples: found.examples } }))
      .catch(onFailure)
  }

  return {
    note(found) {
      if (found.count === 0) return
      pending.count += found.count
      for (const [topic, count] of Object.entries(found.byTopic) as [Topic, number][]) {
        pending.byTopic[topic] = (pending.byTopic[topic] ?? 0) + count
      }
      pending.examples.push(...found.examples.slice(0, examplesMax - pending.examples.length))
      if (monotonicMs() - reportedAt >= reportMsMin) report()
    },
    async close() {
      if (pending.count > 0) report()
      await writing
    },
  }
}
