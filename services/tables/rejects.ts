/**
 * Rejects: records that could not be projected. They are kept in the table `rejects` (contracts/tables/0005-rejects.sql), the
 * dead-letter queue, with their reason and their original bytes.
 *
 * A record of any size is kept. What is beyond the bounds below is cut off, and the row has the full sizes.
 */
import type { Topic } from '../../contracts/events/event.ts'
import type { LogRecord } from '../log/port.ts'
import { createRowWriter, type TableColumn } from './clickhouse/row-binary.ts'
import type { Databases, Tables } from './port.ts'

/** A record that could not be projected, and the reason. */
export interface Reject {
  record: LogRecord
  reason: string
}

/** The place of a record in its log. */
export interface RejectPlace {
  topic: Topic
  partition: number
  offset: number
}

/** Stores rejects of this log (`EventReader.log`). Resolves when they are durable. Rejects with `TablesError`. */
export type StoreRejects = (log: string, rejects: readonly Reject[]) => Promise<void>

/** A key of an event has far less. */
export const keyBytesMax = 64 * 1024
/** A broker accepts 1 MiB by default. */
export const valueBytesMax = 4 * 1024 ** 2
/** Names and values. Tracing and routing need a few hundred bytes. */
export const headerBytesMax = 1024 ** 2

const reasonLengthMax = 2_000
const insertBytesMax = 8 * 1024 ** 2
// ClickHouse's TTL is in seconds of 32 bits.
const keptUntilMax = Date.UTC(2100, 0, 1)

const rejectColumns: readonly TableColumn[] = [
  { name: 'log', type: 'LowCardinality(String)' },
  { name: 'topic', type: 'LowCardinality(String)' },
  { name: 'partition', type: 'UInt32' },
  { name: 'offset', type: 'UInt64' },
  { name: 'appended_at', type: 'Int64' },
  { name: 'rejected_at', type: "DateTime64(3, 'UTC')" },
  { name: 'kept_until', type: "DateTime64(3, 'UTC')" },
  { name: 'reason', type: 'String' },
  { name: 'reason_kind', type: 'String' },
  { name: 'key', type: 'Nullable(String)' },
  { name: 'key_bytes', type: 'UInt64' },
  { name: 'value', type: 'Nullable(String)' },
  { name: 'value_bytes', type: 'UInt64' },
  { name: 'header_names', type: 'Array(String)' },
  { name: 'header_values', type: 'Array(String)' },
  { name: 'header_count', type: 'UInt32' },
  { name: 'header_bytes', type: 'UInt64' },
]

export interface RejectStore {
  tables: Pick<Tables, 'insert'>
  databases: Databases
  /** How long a reject is kept, ms. */
  keptMs: number
  /** Unix ms. */
  now: () => number
}

/** The same record is one row, however often it is passed. The first time of its rejection stays. */
export function createRejectStore({ tables, databases, keptMs, now }: RejectStore): StoreRejects {
  const table = `${databases.base}.rejects`
  return async (log, rejects) => {
    const rejectedAt = now()
    const keptUntil = Math.min(rejectedAt + keptMs, keptUntilMax)
    let writer = createRowWriter(rejectColumns, 1_024)
    for (const [index, { record, reason }] of rejects.entries()) {
      const place = [record.topic, record.partition, record.offset, Math.round(record.appendedAt)]
      const text = reason.slice(0, reasonLengthMax)
      writer.add([log, ...place, rejectedAt, keptUntil, text, reasonKind(text), ...contentOf(record)])
      const rows = writer.bytes()
      if (rows.length < insertBytesMax && index < rejects.length - 1) continue
      await tables.insert({ table, columns: rejectColumns, rows })
      writer = createRowWriter(rejectColumns, 1_024)
    }
  }
}

/** Settles rejects: their events are in the ledger now. Their rows stay as long as they would have. */
export async function settleRejects(
  tables: Pick<Tables, 'run'>,
  { base }: Databases,
  records: readonly LogRecord[],
): Promise<void> {
  if (records.length === 0) return
  const columns = rejectColumns.map(({ name }) => name).join(', ')
  await tables.run({
    query: `INSERT INTO ${base}.rejects (${columns}, settled_at, earliness)
      SELECT ${columns}, now64(3, 'UTC'), 18446744073709551615 FROM ${base}.rejects FINAL
      WHERE toUnixTimestamp64Milli(settled_at) = 0 AND (topic, partition, offset, appended_at) IN (SELECT arrayJoin(arrayZip(
        {topics:Array(String)}, {partitions:Array(UInt32)}, {offsets:Array(UInt64)}, {appended:Array(Int64)})))`,
    query_params: {
      topics: records.map(({ topic }) => topic),
      partitions: records.map(({ partition }) => partition),
      offsets: records.map(({ offset }) => offset),
      appended: records.map(({ appendedAt }) => Math.round(appendedAt)),
    },
  })
}

/** `pledges/0/17` */
export function placeName({ topic, partition, offset }: RejectPlace): string {
  return `${topic}/${partition}/${offset}`
}

/**
 * The kind of a reason: without its values. A wrong schema makes thousands of rejects whose reasons differ only in a value. Schema ids
 * stay, because each has its own cause. A reason may be cut within a value. Pure.
 */
export function reasonKind(reason: string): string {
  return reason
    .replace(/, but .*$/s, ', but …')
    .replace(
      /(schema id \d+)|"(?:[^"\\]|\\.)*(?:"|\\?$)|(?<![\w.])-?\d+(?:\.\d+)?(?![\w])/g,
      (_, schemaId) => schemaId ?? '…',
    )
}

/**
 * The reason for a log: up to the first value of the event, which may be private. Of JSON the reason quotes what stands in a field. The
 * reject has all of it. Pure.
 */
export function loggedReason(reason: string): string {
  return reason.replace(/(?:, but|").*$/s, '…')
}

function contentOf({
  key,
  value,
  headers = [],
  omittedValueBytes,
  omittedHeaders = 0,
}: LogRecord): unknown[] {
  const sizes = headers.map(([name, one]) => Buffer.byteLength(name) + one.length)
  let keptBytes = 0
  const kept = headers.filter((_, index) => {
    const bytes = sizes[index] ?? 0
    if (keptBytes + bytes > headerBytesMax) return false
    keptBytes += bytes
    return true
  })
  return [
    key?.subarray(0, keyBytesMax) ?? null,
    key?.length ?? 0,
    value?.subarray(0, valueBytesMax) ?? null,
    omittedValueBytes ?? value?.length ?? 0,
    kept.map(([name]) => name),
    kept.map(([, one]) => one),
    headers.length + omittedHeaders,
    sizes.reduce((sum, size) => sum + size, 0),
  ]
}
