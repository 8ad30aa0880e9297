/**
 * The peer: ClickHouse's own Kafka engine with materialized views into a ledger of the same definition.
 *
 * It decodes in C++ inside the server and crosses no process. What it does not do of a projector's work: check the
 * events' rules and keep rejects (a bad record stops it, or is skipped), tombstones, API keys, the batch log that
 * a fold follows, and the fold.
 */
import { randomBytes } from 'node:crypto'
import type { Topic } from '../../../contracts/events/event.ts'
import { migrate, readSqlFiles } from '../../../services/shared/tables/migrate.ts'
import type { Databases, Tables } from '../../../services/shared/tables/port.ts'

export const engineTopics = ['campaigns', 'pledges'] as const satisfies readonly Topic[]

export interface EngineOptions {
  tables: Tables
  databases: Databases
  brokers: string
  schemaRegistryUrl: string
  topicPrefix: string
  groupId: string
}

/** The group of the consumer of one topic. */
export function engineGroup(groupId: string, topic: Topic): string {
  return `${groupId}-${topic}`
}

const folder = new URL('engine/', import.meta.url)
// A block ends where our batch does: after so many records, or so many ms.
const blockRecordsMax = 50_000
const flushMs = 250

/**
 * Makes the ledger and starts the engine, one consumer and one group (`engineGroup`) a topic. It runs until its databases
 * are dropped.
 */
export async function startEngine(options: EngineOptions): Promise<void> {
  const { tables, databases, topicPrefix, groupId } = options
  await migrate(tables, databases)
  for (const { statements } of readSqlFiles(folder, databases, {})) {
    for (const statement of statements) {
      const query = statement
        .replaceAll('${engine}', engineSettings(options))
        .replaceAll('${prefix}', topicPrefix)
        .replaceAll('${group}', groupId)
        .replaceAll('${key}', randomBytes(32).toString('hex'))
      await tables.run({ query })
    }
  }
}

function engineSettings({ brokers, schemaRegistryUrl }: EngineOptions): string {
  return [
    `kafka_broker_list = '${brokers}'`,
    "kafka_format = 'AvroConfluent'",
    `format_avro_schema_registry_url = '${schemaRegistryUrl}'`,
    `kafka_max_block_size = ${blockRecordsMax}`,
    `kafka_flush_interval_ms = ${flushMs}`,
  ].join(', ')
}
