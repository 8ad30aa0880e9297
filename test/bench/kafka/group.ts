/** How far a consumer group is, as the broker knows it: the same measure for any consumer, ours or not. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from 'kafkajs'

const lookMs = 50
const pauseMsMax = 120_000

/** How many records the topics hold. */
export async function recordCount(admin: Admin, topics: readonly string[]): Promise<number> {
  const ranges = await Promise.all(topics.map(topic => admin.fetchTopicOffsets(topic)))
  return ranges.flat().reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
}

/** Resolves once the group has its members and they have their partitions. Throws where that takes too long. */
export async function groupFormed(admin: Admin, groupId: string): Promise<void> {
  await until(`the group ${groupId} forms`, async () => {
    const { groups } = await admin.describeGroups([groupId])
    return groups[0]?.state === 'Stable' && groups[0].members.length > 0
  })
}

/** Resolves once the group has committed all records of the topics. Throws where it stands still for too long. */
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
      throw new Error(`the group ${groupId} stands still at ${committed} of ${records} records`)
    }
    await delay(lookMs)
  }
}

/** Looks until something holds. Throws, saying what did not come, after two minutes. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + pauseMsMax
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited for ${pauseMsMax / 1000} s that ${what}`)
    await delay(lookMs)
  }
}

/** How many records the group has committed, of topics that begin at offset 0. */
export async function committedCount(
  admin: Admin,
  groupId: string,
  topics: readonly string[],
): Promise<number> {
  const found = await admin.fetchOffsets({ groupId, topics: [...topics] })
  const offsets = found.flatMap(({ partitions }) => partitions.map(({ offset }) => Number(offset)))
  return offsets.reduce((sum, offset) => sum + Math.max(0, offset), 0)
}
