/**
 * The comparison: ClickHouse's own Kafka engine, with materialized views into a ledger with the same schema.
 *
 * It decodes in C++ inside the server, without a second process. It does less than a projector: it does not check the events'
 * rules, keep rejects (a bad record stops it, or is skipped), handle tombstones or API keys, write the batch log that a fold
 * follows, or fold.
 */
import { randomBytes } from 'node:crypto'
import type { Topic } from '../../../contracts/events/event.ts'
import { migrate, readSqlFiles } from '../../../services/tables/migrate.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'

export const engineTopics = ['campaigns', 'pledges'] as const satisfies readonly Topic[]

export interface EngineOptions {
  tables: Tables
  databases: Databases
  brokers: string
  schemaRegistryUrl: string
  topicPrefix: string
  groupId: string
}

/** The consumer group for one topic. */
export function engineGroup(groupId: string, topic: Topic): string {
  return `${groupId}-${topic}`
}

const folder = new URL('engine/', import.meta.url)
// A block ends as our batch does: after this many records, or this many ms.
const blockRecordsMax = 50_000
const flushMs = 250

/**
 * Creates the ledger and starts the engine, with one consumer and one group (`engineGroup`) per topic. It runs until its
 * databases are dropped.
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
