/** The progress of a consumer group according to the broker: the same measure for every consumer. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from 'kafkajs'

const lookMs = 50
const pauseMsMax = 120_000

/** The number of records in the topics. */
export async function recordCount(admin: Admin, topics: readonly string[]): Promise<number> {
  const ranges = await Promise.all(topics.map(topic => admin.fetchTopicOffsets(topic)))
  return ranges.flat().reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
}

/** Resolves when the group has committed all records of the topics. Throws if there is no progress for too long. */
export async function groupDrained(
  admin: Admin,
  groupId: string,
  topics: readonly string[],
  records: number,
): Promise<void> {
  let committed = 0
  let deadline = performance.now() + pauseMsMax
  for (;;) {
    const now = await committedCount(admin, groupId, topics)
    if (now >= records) return
    if (now > committed) deadline = performance.now() + pauseMsMax
    committed = now
    if (performance.now() > deadline) {
      throw new Error(`the group ${groupId} makes no progress at ${committed} of ${records} records`)
    }
    await delay(lookMs)
  }
}

/** Polls until a condition holds. Throws after two minutes, and names the condition. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + pauseMsMax
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited for ${pauseMsMax / 1000} s that ${what}`)
    await delay(lookMs)
  }
}

/** The number of records that the group has committed, for topics that begin at offset 0. */
export async function committedCount(
  admin: Admin,
  groupId: string,
  topics: readonly string[],
): Promise<number> {
  const found = await admin.fetchOffsets({ groupId, topics: [...topics] })
  const offsets = found.flatMap(({ partitions }) => partitions.map(({ offset }) => Number(offset)))
  return offsets.reduce((sum, offset) => sum + Math.max(0, offset), 0)
}
