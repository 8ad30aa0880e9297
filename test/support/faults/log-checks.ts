/** What the Kafka cluster has at the end: the group's positions, and the records that are not events. */
import { topics } from '../../../contracts/events/event.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { placeName } from '../../../services/tables/rejects.ts'
import { kafkaAt, readTopic, withAdmin } from '../kafka/topics.ts'
import { keptRejects } from '../projector/reject-filters.ts'

const groupId = 'pledgeview-projector'

/** The group's positions and the ends of the log, by topic and partition. A partition without records has no position. */
export async function positionsAndEnds(
  address: string,
): Promise<{ positions: Record<string, number>; ends: Record<string, number> }> {
  return withAdmin(kafkaAt(address), async admin => {
    const positions: Record<string, number> = {}
    const ends: Record<string, number> = {}
    for (const topic of topics) {
      for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
        if (Number(high) > 0) ends[`${topic}/${partition}`] = Number(high)
      }
    }
    for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics: [...topics] })) {
      for (const { partition, offset } of partitions) {
        if (Number(offset) > 0) positions[`${topic}/${partition}`] = Number(offset)
      }
    }
    return { positions, ends }
  })
}

/** A record that is not an event: its place and its value. */
type Placed = Record<string, string>

/** The records in the dead-letter queue. */
export async function keptPoison(tables: Tables, databases: Databases): Promise<Placed> {
  const kept = await keptRejects(tables, databases)
  return Object.fromEntries(kept.map(({ record }) => [placeName(record), textOf(record.value)]))
}

/** The records in the log. */
export async function appendedPoison(address: string, values: readonly Uint8Array[]): Promise<Placed> {
  const known = new Set(values.map(textOf))
  const appended: Placed = {}
  for (const { partition, offset, value } of await readTopic(kafkaAt(address), 'pledges')) {
    if (known.has(textOf(value))) appended[`pledges/${partition}/${offset}`] = textOf(value)
  }
  return appended
}

function textOf(value: Uint8Array | null): string {
  return Buffer.from(value ?? []).toString('base64')
}
