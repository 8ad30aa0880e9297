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
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import type { Delivery, PollBounds, Position } from '../port.ts'
import { addSize, createFetchBuffer, type FetchBuffer, type Size } from './buffer.ts'
import type { Member, MemberEvents } from './consumer.ts'
import { type OffsetRange, outOfRange, partitionName, rangeFault, type TopicPartition } from './offsets.ts'
import { toLogRecord } from './record.ts'

export interface Assignment {
  /** Names it among all that any reader of the group ever had. */
  readonly name: string
  readonly partitions: ReadonlyMap<string, HeldPartition>
  readonly buffer: FetchBuffer
  /** Whether the positions are known, so that it is read. */
  isReading: boolean
  /** Topics of which the buffer has its fill. */
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
  /** The buffer has its fill of it. */
  isFull: boolean
  /** It is not fetched, because the buffer has its fill of it or of its topic. */
  isHeldBack: boolean
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
  /** A topic is not fetched while the buffer holds a third of these of it, nor a partition of more than its share. */
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

  /** What fails for an assignment that is gone fails for whoever has the partitions now. */
  function follow(assignment: Assignment, work: Promise<void>): void {
    work.catch((cause: Error) => {
      if (assignment === present) onFailure(cause)
    })
  }

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
      present.buffer.add(messages.map(message => toLogRecord(at.topic, at.partition, message)))
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
      const taken = present.buffer.take(bounds)
      for (const { topic, partition, next } of taken.positions) {
        const held = present.partitions.get(partitionName({ topic, partition }))
        if (held) held.taken = next
      }
      regulate(present, dependencies)
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

/**
 * Holds back what the buffer has its fill of, and fetches it again when half of that is taken.
 *
 * Each topic has a third, so that a backlog of pledges holds up no key, and each of its partitions an equal part of
 * that: a broker fills an answer in a fixed order, and would leave out the last ones as long as the first have more.
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

/** What was full stays so until half of it is taken. */
function isFull({ records, bytes }: Size, bound: Size, wasFull: boolean): boolean {
  if (wasFull) return records > bound.records / 2 || bytes > bound.bytes / 2
  return records >= bound.records || bytes >= bound.bytes
}

function emptyAssignment(name: string, partitions: readonly TopicPartition[] = []): Assignment {
  const held = partitions.map(({ topic, partition }): [string, HeldPartition] => [
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
    isReading: false,
    fullTopics: new Set(),
  }
}
