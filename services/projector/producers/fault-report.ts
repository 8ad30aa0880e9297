/** Reports what producers do wrong to the log and the projector log: the first records of a kind and topic at once, and later ones once a minute. */
import type { Topic } from '../../../contracts/events/event.ts'
import type { LogRecord } from '../../log/port.ts'
import type { ProducerFault, ProjectorNote } from '../projector-log.ts'

export interface FaultReportDependencies {
  /** Writes to the program's log. */
  warn: (found: object, message: string) => void
  /** Writes to the projector log. It is called once at a time. */
  write: (note: ProjectorNote) => Promise<void>
  onFailure: (error: Error) => void
  monotonicMs: () => number
}

const messages: Readonly<Record<ProducerFault['kind'], string>> = {
  misplaced:
    'records are not in the partition of their key, so compaction cannot remove what was deleted: set the ' +
    "producer's partitioner to murmur2 (contracts/events)",
  versions:
    'a producer wrote versions that are not higher than those before them (stale), or one version for two states (conflicting); ' +
    'the outcome is that of the highest version (contracts/events)',
}

/** Of one topic. */
export const examplesMax = 10
const reportMsMin = 60_000

export function createFaultReport({ warn, write, onFailure, monotonicMs }: FaultReportDependencies) {
  const pending = new Map<string, ProducerFault>()
  const reportedAt = new Map<string, number>()
  let writing: Promise<void> = Promise.resolve()

  function report(sinceMsMin: number): void {
    for (const [name, fault] of pending) {
      if (monotonicMs() - (reportedAt.get(name) ?? Number.NEGATIVE_INFINITY) < sinceMsMin) continue
      reportedAt.set(name, monotonicMs())
      pending.delete(name)
      warn(fault.detail, messages[fault.kind])
      writing = writing.then(() => write(fault)).catch(onFailure)
    }
  }

  /** Reports what is due. */
  const turn = () => report(reportMsMin)

  return {
    /** Does nothing if all counts are 0. */
    note(fault: ProducerFault): void {
      if (Object.values(fault.detail.counts).every(count => count === 0)) return
      const name = `${fault.kind} ${fault.detail.topic}`
      const earlier = pending.get(name)
      pending.set(name, earlier ? sumOf(earlier, fault) : structuredClone(fault))
      turn()
    },
    turn,
    /** Reports what is left. */
    async close(): Promise<void> {
      report(0)
      await writing
    },
  }
}

/** Both are of one kind and topic. */
function sumOf(earlier: ProducerFault, { detail: { counts, examples } }: ProducerFault): ProducerFault {
  const { detail } = earlier
  for (const [name, count] of Object.entries(counts)) detail.counts[name] = (detail.counts[name] ?? 0) + count
  detail.examples = [...detail.examples, ...examples].slice(0, examplesMax)
  return earlier
}

/*
 * Records that are not in the partition of their key. If a key has records in two partitions, compaction never removes
 * the state in one of them, although the tombstone is in the other: a later rebuild would restore what was deleted.
 *
 * They are projected like all others, and named: in the log, the metrics, and the projector log, which `status` reads.
 */

/** By topic. The examples are the first ones, as `topic/partition key`. */
export type MisplacedRecords = Map<Topic, { records: number; examples: string[] }>

const keyLengthMax = 100
// Of an API key, this much identifies it.
const apiKeyLengthMax = 16

/** Adds a record to `to`. */
export function addMisplaced(to: MisplacedRecords, { topic, partition, key }: LogRecord): void {
  const ofTopic = to.get(topic) ?? { records: 0, examples: [] }
  to.set(topic, ofTopic)
  ofTopic.records++
  if (ofTopic.examples.length >= examplesMax) return
  const text = Buffer.from(key ?? []).toString()
  ofTopic.examples.push(
    `${topic}/${partition} ${text.slice(0, topic === 'api-keys' ? apiKeyLengthMax : keyLengthMax)}`,
  )
}
