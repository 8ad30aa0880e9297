/** Keeps what is fetched ahead within bounds, by telling kafkajs which partitions to fetch. */
import { changeTopics } from '../../../../contracts/events/event.ts'
import type { Assignment, HeldPartition } from './assignment.ts'
import { addSize, type Size } from './buffer.ts'
import type { Member } from './consumer.ts'

interface Regulated {
  member: () => Pick<Member, 'pause' | 'resume'>
  bufferRecordsMax: number
  bufferBytesMax: number
}

/**
 * Pauses what fills its share of the buffer, and resumes it when half of that is taken.
 *
 * Each topic has a third of the buffer, so a backlog of pledges does not hold up a key. Of the five topics, only the change events
 * ever have a backlog: the portal's are small. Each partition of a topic has an equal part of that third: a broker fills an answer in
 * a fixed order, and would leave out the last partitions while the first ones have more.
 */
export function regulate(
  { buffer, partitions, fullTopics }: Assignment,
  { member, bufferRecordsMax, bufferBytesMax }: Regulated,
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
