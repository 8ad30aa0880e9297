/**
 * Which partitions a reader has between two joins of the group, how far each is fetched, taken and committed, and which fetched batch it
 * may take.
 *
 * A join ends everything before it, whichever partitions it brings. Fetched records are dropped, and each partition
 * is read from its start. Nothing is fetched until that offset is known. A batch is taken only if it was
 * fetched from exactly the end of the partition's last one, also a batch of offsets without a record. kafkajs does not
 * guarantee this: after a join it still delivers what it fetched before, and after an offset out of range it jumps.
 */
import type { Logger } from 'pino'
import type { Topic } from '../../../../contracts/events/event.ts'
import {
  type Delivery,
  type PartitionRange,
  type PollBounds,
  type Position,
  partitionName,
  type RememberedWatermark,
  type Start,
} from '../../port.ts'
import { outOfRange, rangeFault, rangeOf, type TopicPartition } from '../offsets.ts'
import { markMisplaced, toLogRecord } from '../record.ts'
import { createFetchBuffer, type FetchBuffer, regulate } from './buffer.ts'
import type { Member, MemberEvents } from './consumer.ts'

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
  /** What the group remembers (commits.ts). */
  watermark: RememberedWatermark
}

export interface HeldPartition extends TopicPartition {
  /** The offset to fetch next. */
  fetched: number
  /** Everything before it was taken. */
  taken: number
  /** Everything before it is done. */
  committed: number
  /** What the group has committed. It may be ahead, because it never goes back. */
  atGroup: number
  /** The record before the start, if it is known. It is read again: if another one is there, the log was replaced. */
  last: { offset: number; at: number } | undefined
  /** A batch with an unexpected offset came, and the reason is being checked. */
  isInDoubt: boolean
  /** Its share of the buffer is full. */
  isFull: boolean
  /** It is not fetched, because its share of the buffer, or its topic's share, is full. */
  isHeldBack: boolean
}

/** What an assignment begins with, by `partitionName`. */
export interface AssignmentStarts {
  ranges: ReadonlyMap<string, PartitionRange>
  /** What the group has committed. */
  committed: ReadonlyMap<string, number>
  /** Partitions without a start begin at their first record. */
  starts: ReadonlyMap<string, Start>
  /** Why the log of a partition is another one. */
  replaced: ReadonlyMap<string, string>
  watermark: RememberedWatermark
}

export interface Assignments extends Pick<MemberEvents, 'onJoin' | 'onLeave' | 'onMessages'> {
  present(): Assignment
  /** Begins the current partitions anew, as a join does. */
  restart(): void
  /** The next records of the current assignment, and the positions that moved, maybe without a record. */
  take(bounds: PollBounds): Delivery
}

export interface AssignmentDependencies {
  groupId: string
  /** The member that sends these events. */
  member: () => Member
  findStarts: (assignment: Assignment) => Promise<AssignmentStarts>
  readRanges: () => Promise<Map<string, PartitionRange>>
  /** See `FindStarts`. */
  beginAnew: (range: PartitionRange, reason: string) => void
  /** A topic is not fetched while it fills a third of this, nor a partition that fills its part of the third. */
  bufferRecordsMax: number
  bufferBytesMax: number
  /** There is something to take, or the assignment changed. */
  onChange: () => void
  onFailure: (error: Error) => void
  /** The group may have lost what it has of this partition, with the watermark. */
  restate: (assignment: Assignment, partition: HeldPartition) => Promise<void>
  /** Reading begins at these positions. */
  onReading: (assignment: Assignment, positions: readonly Position[]) => Promise<void>
  logger: Logger
}

export function createAssignments(dependencies: AssignmentDependencies): Assignments {
  const { onChange, onFailure, logger } = dependencies
  let begins = 0
  let memberId = 'none'
  let present = emptyAssignment(memberId)

  /** A failure of an old assignment is ignored: another reader, or a newer assignment, has the partitions now. */
  function follow(assignment: Assignment, work: Promise<void>): void {
    work.catch((cause: Error) => {
      if (assignment === present) onFailure(cause)
    })
  }

  function beginAll(partitions: readonly TopicPartition[]): void {
    begins++
    const name = `${memberId}/${begins}/${partitions.map(partitionName).sort()}`
    // What this process knows is not forgotten, also if kafkajs has committed an offset without it.
    present = { ...emptyAssignment(name, partitions), watermark: present.watermark }
    dependencies.member().pause(partitions)
    follow(present, begin(present))
    onChange()
  }

  async function begin(assignment: Assignment): Promise<void> {
    const held = [...assignment.partitions.values()]
    const { ranges, starts, committed, replaced, watermark } = await dependencies.findStarts(assignment)
    if (assignment !== present) return
    for (const partition of held) {
      const name = partitionName(partition)
      const range = rangeOf(ranges, partition)
      partition.atGroup = Math.max(0, committed.get(name) ?? 0)
      const reason = replaced.get(name)
      if (reason !== undefined) beginAnew(partition, range, reason)
      else beginAt(partition, range, starts.get(name) ?? { next: range.low, lastAt: 0 })
    }
    assignment.partitionCounts = countPartitions(ranges)
    assignment.watermark = watermark
    assignment.isReading = true
    dependencies.member().resume(held)
    onChange()
    logger.info({ assignment: assignment.name }, 'partitions are assigned')
    await dependencies.onReading(
      assignment,
      held.map(({ topic, partition, taken }) => ({ topic, partition, next: taken })),
    )
  }

  function beginAt(partition: HeldPartition, { low }: PartitionRange, { next, lastAt }: Start): void {
    const last = lastAt > 0 && next > low ? { offset: next - 1, at: lastAt } : undefined
    const fetched = last?.offset ?? next
    Object.assign(partition, { fetched, taken: next, committed: next, last })
    dependencies.member().seek(partition, fetched)
  }

  /** The log was replaced: the partition is read from its first record. */
  function beginAnew(partition: HeldPartition, range: PartitionRange, reason: string): void {
    dependencies.beginAnew(range, reason)
    beginAt(partition, range, { next: range.low, lastAt: 0 })
  }

  /**
   * Sends kafkajs back to the partition's offset, and fails if the log no longer has it. If the log was `replaced`, which is the reason, the
   * partition begins anew.
   */
  async function realign(assignment: Assignment, partition: HeldPartition, replaced?: string): Promise<void> {
    partition.isInDoubt = true
    // At an offset out of range, kafkajs has committed one of its own, without the watermark.
    await dependencies.restate(assignment, partition)
    const range = rangeOf(await dependencies.readRanges(), partition)
    if (assignment !== present) return
    const name = partitionName(partition)
    const fault = replaced === undefined && rangeFault(partition.fetched, range)
    if (fault) throw outOfRange(dependencies.groupId, [`${name}: ${fault}`])
    partition.isInDoubt = false
    if (replaced !== undefined) return beginAnew(partition, range, replaced)
    logger.debug(
      { partition: name, offset: partition.fetched },
      'kafkajs is sent back to the offset of the partition',
    )
    dependencies.member().seek(partition, partition.fetched)
  }

  return {
    present: () => present,

    onJoin(id, partitions) {
      memberId = id
      beginAll(partitions)
    },

    onLeave() {
      present = { ...emptyAssignment(`none/${begins}`), watermark: present.watermark }
      onChange()
    },

    restart() {
      // What is not assigned finds its starts when it is.
      if (present.isJoined) beginAll([...present.partitions.values()])
    },

    onMessages(at, from, messages, next) {
      const partition = present.isReading ? present.partitions.get(partitionName(at)) : undefined
      if (!partition || partition.isInDoubt) return false
      if (from !== partition.fetched) {
        follow(present, realign(present, partition))
        return false
      }
      let records = messages.map(message => toLogRecord(at.topic, at.partition, message))
      const { last } = partition
      partition.last = undefined
      if (last && records[0]?.offset === last.offset) {
        if (records[0].appendedAt !== last.at) {
          const replaced = `the record at ${last.offset} is not the one that was read`
          follow(present, realign(present, partition, replaced))
          return false
        }
        records = records.slice(1)
      }
      partition.fetched = next
      markMisplaced(records, present.partitionCounts.get(at.topic) ?? 1)
      present.buffer.add(records)
      regulate(present, dependencies)
      onChange()
      return true
    },

    take(bounds) {
      const { buffer, partitions, name: assignment } = present
      const { records, positions } = buffer.take(bounds)
      const behind = new Map(positions.map(position => [partitionName(position), position]))
      const moved = [...partitions].flatMap(([name, held]): Position[] => {
        const { topic, partition, fetched, taken } = held
        // Behind the last fetched record are only offsets without a record, for example the markers of transactions. A topic may end with them.
        const next = buffer.held(held).records === 0 ? fetched : (behind.get(name)?.next ?? taken)
        // Right after the start, the record before it is fetched.
        if (next <= taken) return []
        held.taken = next
        return [{ topic, partition, ...behind.get(name), next }]
      })
      regulate(present, dependencies)
      return { records, positions: moved, assignment }
    },
  }
}

/** Records what was committed. */
export function noteCommitted({ partitions }: Assignment, positions: readonly Position[]): void {
  for (const { topic, partition, next } of positions) {
    const held = partitions.get(partitionName({ topic, partition }))
    if (!held) continue
    held.committed = Math.max(held.committed, next)
    held.atGroup = Math.max(held.atGroup, next)
  }
}

function countPartitions(ranges: ReadonlyMap<string, PartitionRange>): Map<Topic, number> {
  const byTopic = Map.groupBy(ranges.values(), ({ topic }) => topic)
  return new Map([...byTopic].map(([topic, ofTopic]) => [topic, ofTopic.length]))
}

/** Without partitions: the member is not in the group. */
function emptyAssignment(name: string, partitions?: readonly TopicPartition[]): Assignment {
  const held = (partitions ?? []).map(({ topic, partition }): [string, HeldPartition] => [
    partitionName({ topic, partition }),
    {
      ...{ topic, partition, fetched: 0, taken: 0, committed: 0, atGroup: 0, last: undefined },
      ...{ isInDoubt: false, isFull: false, isHeldBack: false },
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
    watermark: { watermark: 0, shown: 0 },
  }
}
