/**
 * What a reader holds of its topics, from one join of the group to the next: the partitions, how far each is fetched,
 * taken and committed, and the records between.
 *
 * A join ends everything that was before it, whatever partitions it gives: what was fetched is dropped, and each
 * partition is read from where the group stands. Until that is known, nothing is fetched. A batch is taken only
 * where it begins exactly where the partition's last one ended. kafkajs cannot be trusted with that: after a join it
 * still hands over what it fetched before, and after an offset out of range it jumps.
 */
import type { Logger } from 'pino'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { createFetchBuffer, type FetchBuffer } from './kafka-buffer.ts'
import type { Member, MemberEvents } from './kafka-consumer.ts'
import {
  type OffsetRange,
  outOfRange,
  partitionName,
  rangeFault,
  type TopicPartition,
} from './kafka-offsets.ts'
import { toLogRecord } from './kafka-record.ts'
import type { Delivery, PollBounds, Position } from './port.ts'

export interface Assignment {
  /** Names it among all that any reader of the group ever had. */
  readonly name: string
  readonly partitions: ReadonlyMap<string, HeldPartition>
  readonly buffer: FetchBuffer
  /** Whether the positions are known, so that it is read. */
  isReading: boolean
  /** Topics that are not fetched because the buffer has its fill of them. */
  readonly fullTopics: Set<Topic>
}

export interface HeldPartition extends TopicPartition {
  /** The offset to fetch next. */
  fetched: number
  /** The offset behind what was taken. */
  taken: number
  /** The offset that the group has committed. */
  committed: number
  /** A batch from somewhere else came, and why is being looked into. */
  isInDoubt: boolean
  /** It was, and kafkajs was sent back: until the next record its word counts for offsets that hold none. */
  wasInDoubt: boolean
}

export interface Assignments extends Pick<MemberEvents, 'onJoin' | 'onLeave' | 'onMessages' | 'onNothing'> {
  present(): Assignment
  /** The next records of the present assignment; empty where there are none. */
  take(bounds: PollBounds): Delivery
}

export interface AssignmentDependencies {
  groupId: string
  /** The member whose events these are. */
  member: () => Member
  readStarts: (partitions: readonly TopicPartition[]) => Promise<Map<string, number>>
  readRanges: () => Promise<Map<string, OffsetRange>>
  /** A topic is not fetched while the buffer holds a third of these of it. */
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

  async function begin(assignment: Assignment): Promise<void> {
    const held = [...assignment.partitions.values()]
    const starts = await dependencies.readStarts(held)
    if (assignment !== present) return
    const member = dependencies.member()
    for (const partition of held) {
      const start = starts.get(partitionName(partition)) ?? 0
      Object.assign(partition, { fetched: start, taken: start, committed: start })
      member.seek(partition, start)
    }
    assignment.isReading = true
    member.resume(held)
    onChange()
    logger.info({ assignment: assignment.name }, 'partitions are assigned')
  }

  /** Sends kafkajs back to where the partition is, unless that is not there any more. */
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
      'kafkajs is sent back to where the partition is',
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
      begin(present).catch(onFailure)
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
        realign(present, partition).catch(onFailure)
        return false
      }
      partition.fetched = next
      partition.wasInDoubt = false
      present.buffer.add(messages.map(message => toLogRecord(at.topic, at.partition, message)))
      holdBack(present, at.topic, dependencies)
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
      const taken = present.buffer.take(bounds)
      for (const { topic, partition, next } of taken.positions) {
        const held = present.partitions.get(partitionName({ topic, partition }))
        if (held) held.taken = next
      }
      letFlow(present, dependencies)
      return { ...taken, assignment: present.name }
    },
  }
}

/** Where a partition's next record is committed: behind offsets without one, when all before them is committed. */
export function committedThrough(
  { fetched, taken, committed }: HeldPartition,
  isBufferEmpty: boolean,
): number {
  return isBufferEmpty && committed >= taken ? fetched : committed
}

/** Notes what was committed. */
export function noteCommitted({ partitions }: Assignment, positions: readonly Position[]): void {
  for (const { topic, partition, next } of positions) {
    const held = partitions.get(partitionName({ topic, partition }))
    if (held) held.committed = Math.max(held.committed, next)
  }
}

/** Stops fetching a topic that has its fill of the buffer; the others go on. */
function holdBack(
  { buffer, partitions, fullTopics }: Assignment,
  topic: Topic,
  { member, bufferRecordsMax, bufferBytesMax }: AssignmentDependencies,
): void {
  const { records, bytes } = buffer.held(topic)
  const isFull = records >= bufferRecordsMax / topics.length || bytes >= bufferBytesMax / topics.length
  if (!isFull || fullTopics.has(topic)) return
  fullTopics.add(topic)
  member().pause(ofTopic(partitions, topic))
}

/** Fetches a topic again when half of its part of the buffer is free. */
function letFlow(
  { buffer, partitions, fullTopics }: Assignment,
  { member, bufferRecordsMax, bufferBytesMax }: AssignmentDependencies,
): void {
  for (const topic of fullTopics) {
    const { records, bytes } = buffer.held(topic)
    const isHalfFree =
      records <= bufferRecordsMax / topics.length / 2 && bytes <= bufferBytesMax / topics.length / 2
    if (!isHalfFree) continue
    fullTopics.delete(topic)
    member().resume(ofTopic(partitions, topic))
  }
}

function ofTopic(partitions: ReadonlyMap<string, HeldPartition>, topic: Topic): HeldPartition[] {
  return [...partitions.values()].filter(partition => partition.topic === topic)
}

function emptyAssignment(name: string, partitions: readonly TopicPartition[] = []): Assignment {
  const held = partitions.map(({ topic, partition }): [string, HeldPartition] => [
    partitionName({ topic, partition }),
    { topic, partition, fetched: 0, taken: 0, committed: 0, isInDoubt: false, wasInDoubt: false },
  ])
  return {
    name,
    partitions: new Map(held),
    buffer: createFetchBuffer(),
    isReading: false,
    fullTopics: new Set(),
  }
}
