/**
 * The ranges of the log, the offsets that a consumer group has committed, and whether reading can begin at an offset.
 *
 * kafkajs silently skips records that are deleted. Here that is an error, because records that were deleted
 * before they were projected are missing from the read tables for good.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Admin } from 'kafkajs'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { type PartitionRange, partitionName } from '../port.ts'
import { type TopicNames, topicName, topicOfName } from './client.ts'
import { askLeaders } from './repairs/leaders.ts'

export interface TopicPartition {
  topic: Topic
  partition: number
}

export interface Cluster {
  admin: Admin
  names: TopicNames
}

// A new leader may not know the end of its partition yet. Then a committed offset seems to be above the end.
const endChecksMax = 10
const endCheckPauseMs = 500
// The group has committed nothing. kafkajs commits other negative offsets when it gives up a position that is out of range.
const noOffset = -1

/** The ranges of all partitions, by `partitionName`. */
export async function readRanges({ admin, names }: Cluster): Promise<Map<string, PartitionRange>> {
  const byTopic = await Promise.all(
    topics.map(async topic => {
      const partitions = await askLeaders(admin, () => admin.fetchTopicOffsets(topicName(names, topic)))
      return partitions.map(({ partition, low, high }): [string, PartitionRange] => [
        partitionName({ topic, partition }),
        { topic, partition, low: Number(low), end: Number(high) },
      ])
    }),
  )
  return new Map(byTopic.flat())
}

/** Throws if the log does not have the partition. */
export function rangeOf(ranges: ReadonlyMap<string, PartitionRange>, at: TopicPartition): PartitionRange {
  const name = partitionName(at)
  const range = ranges.get(name)
  if (!range) throw new Error(`the log has no partition ${name}`)
  return range
}

/** The ranges of the log, and which of these partitions cannot be read from `starts`, with the reason. By `partitionName`. */
export async function checkStarts(
  cluster: Cluster,
  partitions: readonly TopicPartition[],
  starts: ReadonlyMap<string, number>,
): Promise<{ ranges: Map<string, PartitionRange>; faults: Map<string, string> }> {
  for (let check = 1; ; check++) {
    const ranges = await readRanges(cluster)
    const faults = new Map<string, string>()
    let isAboveEnd = false
    for (const at of partitions) {
      const name = partitionName(at)
      const range = rangeOf(ranges, at)
      const start = starts.get(name)
      const fault = rangeFault(start, range)
      if (fault) faults.set(name, fault)
      if (start !== undefined && start > range.end) isAboveEnd = true
    }
    if (!isAboveEnd || check === endChecksMax) return { ranges, faults }
    await sleep(endCheckPauseMs)
  }
}

/** Why reading cannot begin at an offset, or `undefined`. */
export function rangeFault(
  offset: number | undefined,
  { low, end }: Pick<PartitionRange, 'low' | 'end'>,
): string | undefined {
  if (offset === undefined) return undefined
  if (offset < low) return `it is read up to ${offset}, and the records before ${low} are deleted`
  if (offset > end) return `it is read up to ${offset}, and the log ends at ${end}`
  return undefined
}

/** The error if the log no longer has the records after the offset at which reading has to begin. */
export function outOfRange(groupId: string, faults: readonly string[]): Error {
  return new Error(
    `the group ${groupId} cannot continue without skipping records. ${faults.join('; ')}. If you have these records in ` +
      'files, append them and run pledgeview rebuild. If nobody needs them, stop the projectors and run pledgeview restored: they then read ' +
      'everything that is left',
  )
}

/** The offsets that a group has committed, by `partitionName`. */
export async function readCommitted(
  { admin, names }: Cluster,
  groupId: string,
): Promise<Map<string, number>> {
  const offsets = await admin.fetchOffsets({ groupId, topics: topics.map(topic => topicName(names, topic)) })
  const committed = new Map<string, number>()
  for (const { topic: name, partitions } of offsets) {
    const topic = topicOfName(names, name)
    for (const { partition, offset } of partitions) {
      if (Number(offset) !== noOffset) committed.set(partitionName({ topic, partition }), Number(offset))
    }
  }
  return committed
}
