/** The records that are not events: those in the log, and those that were kept. */
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { placeName } from '../../../services/tables/rejects.ts'
import { kafkaAt, readTopic } from '../kafka/topics.ts'
import { keptRejects } from '../projector/reject-filters.ts'

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
