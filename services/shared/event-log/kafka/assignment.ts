/**
 * What a reader holds of its topics between two joins of the group: the partitions, how far each is fetched, taken
 * and committed, and the records in between.
 *
 * A join ends everything before it, whichever partitions it brings. Fetched records are dropped, and each partition
 * is read from its committed offset. Nothing is fetched until that offset is known. A batch is taken only if it
 * begins exactly at the end of the partition's last one. kafkajs does not guarantee this: after a join it still
 * delivers what it fetched before, and after an offset out of range it jumps.
 */
import type { Logger } from 'pino'
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import type { Delivery, PollBounds, Position } from '../port.ts'
import { addSize, createFetchBuffer, type FetchBuffer, type Size } from './buffer.ts'
import type { Member, MemberEvents } from './consumer.ts'
import { type OffsetRange, outOfRange, partitionName, rangeFault, type TopicPartition } from './offsets.ts'
import { markMisplaced } from './partition.ts'
import { toLogRecord } from './record.ts'

export interface Assignment {
  /** Unique among all assignments of all readers of the group. */
  readonly name: string
  readonly partitions: ReadonlyMap<string, HeldPartition>
  readonly buffer: FetchBuffer
  /** Whether the group has assigned them: not before the first join, and not after leaving. */
  readonly isJoined: boolean
  /** Whether the positions are known, so that it can be read. */
  isReading: boolean
  /** Topics whose share of the buffer is full. */
  readonly fullTopics: Set<Topic>
  /** How many partitions each topic has, with those of other readers. */
  partitionCounts: ReadonlyMap<Topic, number>
}

export interface HeldPartition extends TopicPartition {
  /** The offset to fetch next. */
  fetched: number
  /** The offset after the last record that was taken. */
  taken: number
  /** The offset that the group has committed. */
  committed: number
  /** A batch with an unexpected offset came, and the reason is being checked. */
  isInDoubt: boolean
  /**
   * It was in doubt, and kafkajs was sent back. Until the next record, kafkajs is believed about offsets without a
   * record.
   */
  wasInDoubt: boolean
  /** Its share of the buffer is full. */
  isFull: boolean
  /** It is not fetched, because its share of the buffer, or its topic's share, is full. */
  isHeldBack: boolean
}

export interface Assignments extends Pick<MemberEvents, 'onJoin' | 'onLeave' | 'onMessages' | 'onNothing'> {
  present(): Assignment
  /** The next records of the current assignment; empty if there are none. */
  take(bounds: PollBounds): Delivery
}

export interface AssignmentDependencies {
  groupId: string
  /** The member that sends these events. */
  member: () => Member
  readStarts: (partitions: readonly TopicPartition[]) => Promise<Map<string, number>>
  readRanges: () => Promise<Map<string, OffsetRange>>
  /** A topic is not fetched while it fills a third of this, nor a partition that fills its part of the third. */
  bufferRecordsMax: number
  bufferBytesMax: number
  /** There is something to take, or the assignment changed. */
  onChange: () => void
  onFailure: (error: Error) => void
  logger: Logger
}

export function createAssignments(dependencies: AssignmentDependencies): Assignments {
  const { onChange, onFailure, logger } = dependencies
  let joins = 0
  let present = emptyAssignment('none')

  /** A failure of an old assignment is ignored: another reader, or a newer assignment, has the partitions now. */
  function follow(assignment: Assignment, work: Promise<void>): void {
    work.catch((cause: Error) => {
      if (assignment === present) onFailure(cause)
    })
  }

  async function begin(assignment: Assignment): Promise<void> {
    const held = [...assignment.partitions.values()]
    const [starts, ranges] = await Promise.all([dependencies.readStarts(held), dependencies.readRanges()])
    if (assignment !== present) return
    const member = dependencies.member()
    for (const partition of held) {
      const start = starts.get(partitionName(partition)) ?? 0
      Object.assign(partition, { fetched: start, taken: start, committed: start })
      member.seek(partition, start)
    }
    assignment.partitionCounts = countPartitions(ranges)
    assignment.isReading = true
    member.resume(held)
    onChange()
    logger.info({ assignment: assignment.name }, 'partitions are assigned')
  }

  /** Sends kafkajs back to the partition's offset. Fails if the log no longer has that offset. */
  async function realign(assignment: Assignment, partition: HeldPartition): Promise<void> {
    partition.isInDoubt = true
    const ranges = await dependencies.readRanges()
    if (assignment !== present) return
    const name = partitionName(partition)
    const range = ranges.get(name)
    const fault = range && rangeFault(partition.fetched, range)
    if (fault) throw outOfRange(dependencies.groupId, [`${name}: ${fault}`])
    logger.debug(
      { partition: name, offset: partition.fetched },
      'kafkajs is sent back to the offset of the partition',
    )
    partition.isInDoubt = false
    partition.wasInDoubt = true
    dependencies.member().seek(partition, partition.fetched)
  }

  return {
    present: () => present,

    onJoin(memberId, partitions) {
      joins++
      present = emptyAssignment(`${memberId}/${joins}/${partitions.map(partitionName).sort()}`, partitions)
      dependencies.member().pause(partitions)
      follow(present, begin(present))
      onChange()
    },

    onLeave() {
      present = emptyAssignment(`none/${joins}`)
      onChange()
    },

    onMessages(at, from, messages, next) {
      const partition = present.isReading ? present.partitions.get(partitionName(at)) : undefined
      if (!partition || partition.isInDoubt) return false
      if (from !== partition.fetched) {
        follow(present, realign(present, partition))
        return false
      }
      partition.fetched = next
      partition.wasInDoubt = false
      const records = messages.map(message => toLogRecord(at.topic, at.partition, message))
      markMisplaced(records, present.partitionCounts.get(at.topic) ?? 1)
      present.buffer.add(records)
      regulate(present, dependencies)
      onChange()
      return true
    },

    onNothing(at, from, next) {
      const partition = present.isReading ? present.partitions.get(partitionName(at)) : undefined
      if (!partition || partition.isInDoubt) return
      if (from <= partition.fetched || partition.wasInDoubt)
        partition.fetched = Math.max(partition.fetched, next)
    },

    take(bounds) {
      const { records, positions } = present.buffer.take(bounds)
      const all = positions.map(position => behindEmpty(position, present))
      for (const position of all) {
        const held = present.partitions.get(partitionName(position))
        if (held) held.taken = position.next
      }
      regulate(present, dependencies)
      return { records, positions: all, assignment: present.name }
    },
  }
}

/**
 * If all records that were fetched are taken, the position is behind the offsets without a record too, for example the
 * markers of transactions. Otherwise the group would never get to the end of a topic that ends with a marker.
 */
function behindEmpty(position: Position, { buffer, partitions }: Assignment): Position {
  const held = partitions.get(partitionName(position))
  if (!held || held.isInDoubt || buffer.held(held).records > 0) return position
  return { ...position, next: Math.max(position.next, held.fetched) }
}

/**
 * The committed offset of a partition. If everything before it is committed, offsets without a record count as
 * committed.
 */
export function committedThrough(
  { fetched, taken, committed }: HeldPartition,
  isBufferEmpty: boolean,
): number {
  return isBufferEmpty && committed >= taken ? fetched : committed
}

/** Records what was committed. */
export function noteCommitted({ partitions }: Assignment, positions: readonly Position[]): void {
  for (const { topic, partition, next } of positions) {
    const held = partitions.get(partitionName({ topic, partition }))
    if (held) held.committed = Math.max(held.committed, next)
  }
}

/**
 * Pauses what fills its share of the buffer, and resumes it when half of that is taken.
 *
 * Each topic has a third of the buffer, so a backlog of pledges does not hold up a key. Each partition of a topic has
 * an equal part of that third: a broker fills an answer in a fixed order, and would leave out the last partitions
 * while the first ones have more.
 */
function regulate(
  { buffer, partitions, fullTopics }: Assignment,
  dependencies: AssignmentDependencies,
): void {
  const { member, bufferRecordsMax, bufferBytesMax } = dependencies
  const third: Size = { records: bufferRecordsMax / topics.length, bytes: bufferBytesMax / topics.length }
  const changed: HeldPartition[] = []
  for (const [topic, ofTopic] of Map.groupBy(partitions.values(), held => held.topic)) {
    const held: Size = { records: 0, bytes: 0 }
    for (const partition of ofTopic) addSize(held, buffer.held(partition))
    const isTopicFull = isFull(held, third, fullTopics.has(topic))
    if (isTopicFull) fullTopics.add(topic)
    else fullTopics.delete(topic)
    const share: Size = { records: third.records / ofTopic.length, bytes: third.bytes / ofTopic.length }
    for (const partition of ofTopic) {
      partition.isFull = isFull(buffer.held(partition), share, partition.isFull)
      const isHeldBack = isTopicFull || partition.isFull
      if (isHeldBack !== partition.isHeldBack) changed.push(partition)
      partition.isHeldBack = isHeldBack
    }
  }
  const [held, free] = [changed.filter(at => at.isHeldBack), changed.filter(at => !at.isHeldBack)]
  if (held.length > 0) member().pause(held)
  if (free.length > 0) member().resume(free)
}

function countPartitions(ranges: ReadonlyMap<string, OffsetRange>): Map<Topic, number> {
  const byTopic = Map.groupBy(ranges.values(), ({ topic }) => topic)
  return new Map([...byTopic].map(([topic, ofTopic]) => [topic, ofTopic.length]))
}

/** What was full stays full until half of it is taken. */
function isFull({ records, bytes }: Size, bound: Size, wasFull: boolean): boolean {
  if (wasFull) return records > bound.records / 2 || bytes > bound.bytes / 2
  return records >= bound.records || bytes >= bound.bytes
}

/** Without partitions: the member is not in the group. */
function emptyAssignment(name: string, partitions?: readonly TopicPartition[]): Assignment {
  const held = (partitions ?? []).map(({ topic, partition }): [string, HeldPartition] => [
    partitionName({ topic, partition }),
    {
      ...{ topic, partition, fetched: 0, taken: 0, committed: 0 },
      ...{ isInDoubt: false, wasInDoubt: false, isFull: false, isHeldBack: false },
    },
  ])
  return {
    name,
    partitions: new Map(held),
    buffer: createFetchBuffer(),
    isJoined: partitions !== undefined,
    isReading: false,
    fullTopics: new Set(),
    partitionCounts: new Map(),
  }
}
