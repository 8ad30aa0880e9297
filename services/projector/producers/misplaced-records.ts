/**
 * Records that are not in the partition of their key. If a key has records in two partitions, compaction never removes
 * the state in one of them, although the tombstone is in the other: a later rebuild would restore what was deleted.
 *
 * They are projected like all others, and named: in the log, the metrics, and the projector log, which `status` reads.
 */
import type { Topic } from '../../../contracts/events/event.ts'
import type { LogRecord } from '../../log/port.ts'
import { examplesMax } from './fault-report.ts'

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
