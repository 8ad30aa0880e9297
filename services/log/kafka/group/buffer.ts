/**
 * Records that were fetched and not taken yet: a queue for each partition.
 *
 * Partitions get equal shares of what is taken, so a backlog in one does not hold up the others.
 */

import { changeTopics } from '../../../../contracts/events/event.ts'
import { bytesOf, type LogRecord, type PollBounds, type Position, partitionName } from '../../port.ts'
import type { TopicPartition } from '../offsets.ts'
import type { Assignment, AssignmentDependencies, HeldPartition } from './assignment.ts'

export type FetchBuffer = ReturnType<typeof createFetchBuffer>

interface Size {
  records: number
  bytes: number
}

interface Queue {
  waiting: LogRecord[]
  bytes: number
}

export function createFetchBuffer() {
  const queues = new Map<string, Queue>()
  let turn = 0

  function queueOf(at: TopicPartition): Queue {
    const name = partitionName(at)
    const known = queues.get(name)
    if (known) return known
    const queue: Queue = { waiting: [], bytes: 0 }
    queues.set(name, queue)
    return queue
  }

  return {
    /** Adds records of one partition, in order, directly after those that were added before. */
    add(records: readonly LogRecord[]): void {
      const [first] = records
      if (!first) return
      const queue = queueOf(first)
      for (const record of records) {
        queue.waiting.push(record)
        queue.bytes += bytesOf(record)
      }
    },

    /** The next records, up to the bounds, and the positions after them. A first record always fits. */
    take({ recordsMax, bytesMax }: Pick<PollBounds, 'recordsMax' | 'bytesMax'>) {
      const waiting = rotated([...queues.values()], turn++).filter(queue => queue.waiting.length > 0)
      const room: Size = { records: recordsMax, bytes: bytesMax }
      const parts = waiting.map((): LogRecord[] => [])
      // First each queue gets an equal share. Then the unused room goes to the queues that have more.
      for (const isShared of [true, false]) {
        for (const [index, queue] of waiting.entries()) {
          const sharers = isShared ? waiting.length - index : 1
          const share: Size = { records: Math.ceil(room.records / sharers), bytes: room.bytes / sharers }
          const isFirst = parts.every(part => part.length === 0)
          const taken = takeFrom(queue, share, isFirst)
          for (const record of taken.records) parts[index]?.push(record)
          room.records -= taken.records.length
          room.bytes -= taken.bytes
        }
      }
      return { records: parts.flat(), positions: parts.flatMap(positionBehind) }
    },

    /** The size of what is held of a partition, or of all. Bytes are those of keys, values and header values. */
    held(at?: TopicPartition): Size {
      const size: Size = { records: 0, bytes: 0 }
      const asked = at ? [queues.get(partitionName(at))] : queues.values()
      for (const queue of asked)
        if (queue) addSize(size, { records: queue.waiting.length, bytes: queue.bytes })
      return size
    },
  }
}

/** Adds to `to`. */
function addSize(to: Size, size: Size): void {
  to.records += size.records
  to.bytes += size.bytes
}

/** Takes what fits into the share. A first record fits in any case. */
function takeFrom(queue: Queue, share: Size, isFirst: boolean): { records: LogRecord[]; bytes: number } {
  let count = 0
  let bytes = 0
  for (const record of queue.waiting) {
    const mustFit = isFirst && count === 0
    const next = bytes + bytesOf(record)
    if (count >= share.records || (!mustFit && next > share.bytes)) break
    count++
    bytes = next
  }
  queue.bytes -= bytes
  return { records: queue.waiting.splice(0, count), bytes }
}

function positionBehind(part: readonly LogRecord[]): Position[] {
  const last = part.at(-1)
  if (!last) return []
  const { topic, partition, offset, appendedAt } = last
  return [{ topic, partition, next: offset + 1, lastAt: appendedAt }]
}

/** The queue that came first last time comes last now, so no queue starves under a tight bound. */
function rotated<T>(items: readonly T[], turn: number): T[] {
  const start = items.length === 0 ? 0 : turn % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

/**
 * Keeps what is fetched ahead within bounds: pauses what fills its share of the buffer, and resumes it when half of that is taken.
 *
 * Each topic has a third of the buffer, so a backlog of pledges does not hold up a key. Of the five topics, only the change events
 * ever have a backlog: the portal's are small. Each partition of a topic has an equal part of that third: a broker fills an answer in
 * a fixed order, and would leave out the last partitions while the first ones have more.
 */
export function regulate(
  { buffer, partitions, fullTopics }: Assignment,
  { member, bufferRecordsMax, bufferBytesMax }: AssignmentDependencies,
): void {
  const third: Size = {
    records: bufferRecordsMax / changeTopics.length,
    bytes: bufferBytesMax / changeTopics.length,
  }
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

/** What was full stays full until half of it is taken. */
function isFull({ records, bytes }: Size, bound: Size, wasFull: boolean): boolean {
  if (wasFull) return records > bound.records / 2 || bytes > bound.bytes / 2
  return records >= bound.records || bytes >= bound.bytes
}
