/**
 * The committed offsets of a consumer group, and whether it can continue from them.
 *
 * kafkajs silently skips records that a group has missed. Here that is an error, because records that were deleted
 * before they were projected are missing from the read tables for good.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Admin } from 'kafkajs'
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import { type KafkaSettings, topicName } from './client.ts'
import { askLeaders } from './leaders.ts'

export interface TopicPartition {
  topic: Topic
  partition: number
}

/** What a partition holds: the offset of its first record, and the offset that its next record will get. */
export interface OffsetRange extends TopicPartition {
  low: number
  high: number
}

/** The committed offset to read next; `undefined` if the group has committed none. */
export type CommittedOffset = number | undefined

/** What the owner of a group lacks in one partition: the group is ahead of it. */
export interface Behind {
  /** The owner has everything before it; `undefined`: it has nothing. It is less than the committed offset. */
  recorded?: number
  /** Where to read again from. It may be less than the log's first offset. */
  from: number
}

/**
 * Compares committed offsets of a group, by `partitionName`, with what its owner has. Returns the partitions in which the group is
 * ahead. `all`: what the group has committed in all of its partitions. It is asked before anything is read, also if the group has
 * committed nothing.
 */
export type FindBehind = (
  committed: ReadonlyMap<string, number>,
  all: ReadonlyMap<string, number>,
) => Promise<ReadonlyMap<string, Behind>>

/** The log no longer has the records after the group's committed offset. */
export class OffsetOutOfRange extends Error {
  override name = 'OffsetOutOfRange'
}

export interface Cluster {
  admin: Admin
  names: Pick<KafkaSettings, 'topicPrefix'>
}

// A new leader may not know the end of its partition yet. Then a committed offset seems to be above the end.
const endChecksMax = 10
const endCheckPauseMs = 500
// The group has committed nothing. kafkajs commits other negative offsets when it gives up a position that is out of
// range. That must not look like a new group.
const noOffset = -1

/** The ranges of all partitions, by `partitionName`. */
export async function readRanges({ admin, names }: Cluster): Promise<Map<string, OffsetRange>> {
  const byTopic = await Promise.all(
    topics.map(async topic => {
      const partitions = await askLeaders(admin, () => admin.fetchTopicOffsets(topicName(names, topic)))
      return partitions.map(({ partition, low, high }): [string, OffsetRange] => [
        partitionName({ topic, partition }),
        { topic, partition, low: Number(low), high: Number(high) },
      ])
    }),
  )
  return new Map(byTopic.flat())
}

/** What is known of a group, by `partitionName`. */
export interface GroupPositions {
  committed: ReadonlyMap<string, number>
  /** The partitions in which the group has committed more than the tables have. */
  behind: ReadonlyMap<string, Behind>
}

/**
 * The offsets from which a group continues in these partitions; the first record's if it has committed none. Where the
 * group is ahead of its owner, it goes back. Throws `OffsetOutOfRange` if records after a committed offset, or
 * records that the owner lacks, are missing.
 */
export async function readStarts(
  cluster: Cluster,
  groupId: string,
  partitions: readonly TopicPartition[],
  { committed, behind }: GroupPositions,
): Promise<Map<string, number>> {
  for (let check = 1; ; check++) {
    const ranges = await readRanges(cluster)
    const faults: string[] = []
    const starts = new Map<string, number>()
    let isAboveEnd = false
    for (const at of partitions) {
      const name = partitionName(at)
      const range = ranges.get(name)
      if (!range) throw new Error(`the log has no partition ${name}`)
      const offset = committed.get(name)
      const fault = rangeFault(offset, range) ?? lostFault(offset, range, behind.get(name))
      if (fault) faults.push(`${name}: ${fault}`)
      if (offset !== undefined && offset > range.high) isAboveEnd = true
      starts.set(name, startOf(offset, range, behind.get(name)))
    }
    if (faults.length === 0) return starts
    if (!isAboveEnd || check === endChecksMax) throw outOfRange(groupId, faults)
    await sleep(endCheckPauseMs)
  }
}

/** Asks only about these partitions. */
export async function behindIn(
  partitions: readonly TopicPartition[],
  committed: ReadonlyMap<string, number>,
  findBehind: FindBehind | undefined,
): Promise<ReadonlyMap<string, Behind>> {
  const names = new Set(partitions.map(partitionName))
  const all = new Map([...committed].filter(([, offset]) => offset > 0))
  const asked = new Map([...all].filter(([name]) => names.has(name)))
  return findBehind ? findBehind(asked, all) : new Map()
}

/** The offset to read next. */
export function startOf(
  offset: CommittedOffset,
  { low }: Pick<OffsetRange, 'low'>,
  behind: Behind | undefined,
): number {
  if (offset === undefined) return low
  return behind ? Math.min(offset, Math.max(low, behind.from)) : offset
}

/**
 * Why the records that the group's owner lacks cannot be read again, or `undefined`. If the group is at the first record, then
 * nothing can be read again: its offset was set there by hand, because what is deleted is not needed.
 */
export function lostFault(
  offset: CommittedOffset,
  { low }: Pick<OffsetRange, 'low'>,
  behind: Behind | undefined,
): string | undefined {
  if (offset === undefined || behind?.recorded === undefined) return undefined
  if (behind.recorded >= low || offset <= low) return undefined
  return (
    `the group is at ${offset}, but the tables have only what is before ${behind.recorded}: they were restored from an older ` +
    `backup. The records before ${low} are deleted`
  )
}

/** Why a group cannot continue from an offset, or `undefined`. */
export function rangeFault(
  offset: CommittedOffset,
  { low, high }: Pick<OffsetRange, 'low' | 'high'>,
): string | undefined {
  if (offset === undefined) return undefined
  if (offset < 0) return `its position was given up for the special offset ${offset}`
  if (offset < low) return `the group is at ${offset}, and the records before ${low} are deleted`
  if (offset > high) return `the group is at ${offset}, and the log ends at ${high}`
  return undefined
}

export function outOfRange(groupId: string, faults: readonly string[]): OffsetOutOfRange {
  return new OffsetOutOfRange(
    `the group ${groupId} cannot continue without skipping records. ${faults.join('; ')}. Rebuild the read model, or, if the missing ` +
      "records are not needed, set the group's offsets to the earliest records (kafka-consumer-groups --reset-offsets --to-earliest)",
  )
}

export function partitionName({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}

/** The offsets that a group has committed, by `partitionName`. */
export async function readCommitted(
  { admin, names }: Cluster,
  groupId: string,
): Promise<Map<string, number>> {
  const byName = new Map(topics.map(topic => [topicName(names, topic), topic]))
  const offsets = await admin.fetchOffsets({ groupId, topics: [...byName.keys()] })
  const committed = new Map<string, number>()
  for (const { topic: name, partitions } of offsets) {
    const topic = byName.get(name)
    if (!topic) continue
    for (const { partition, offset } of partitions) {
      if (Number(offset) !== noOffset) committed.set(partitionName({ topic, partition }), Number(offset))
    }
  }
  return committed
}
