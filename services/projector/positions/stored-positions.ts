/** The positions as they stand in the tables (positions.ts). */
import { type LogState, partitionName } from '../../log/port.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Shard } from '../../tables/port.ts'

/** A row of the table `positions`. Times are Unix ms. */
export interface StoredPosition {
  log: string
  topic: string
  partition: number
  era: number
  /** The offset to read next. */
  next: number
  /** When the record before `next` entered the log; 0: unknown. */
  lastAt: number
  /** Everything that the partition had at this time is read. */
  readUntil: number
  /** What is before this offset is read again after a restore. */
  againUntil: number
  /** The watermark that lists had shown before the restore. What is read again gets a stamp from then on. */
  lostWatermark: number
}

const columns = [
  { name: 'log', type: 'String' },
  { name: 'topic', type: 'String' },
  { name: 'partition', type: 'UInt32' },
  { name: 'era', type: 'UInt32' },
  { name: 'next', type: 'UInt64' },
  { name: 'last_at', type: 'Int64' },
  { name: 'read_until', type: "DateTime64(3, 'UTC')" },
  { name: 'again_until', type: 'UInt64' },
  { name: 'lost_watermark', type: "DateTime64(3, 'UTC')" },
] as const

export interface StoredPositions {
  /** Of this log, by partition: the lowest of all shards. */
  ofLog: Map<string, StoredPosition>
  /** When every partition was last known to be read, by log. */
  readUntil: Map<string, number>
}

/** The positions in the tables. A shard without a row for a partition has nothing of it. */
export async function readPositions(shards: readonly Shard[], log: string): Promise<StoredPositions> {
  const byShard = await Promise.all(
    shards.map(({ tables, databases: { ledger } }) =>
      tables.rows<StoredPosition>({
        query: `SELECT log, topic, partition, latest.1 AS era, latest.2 AS next, latest.3 AS lastAt, latest.4 AS readUntil,
                  latest.5 AS againUntil, latest.6 AS lostWatermark
                FROM
                (
                  SELECT log, topic, partition, max((era, next, last_at, toUnixTimestamp64Milli(read_until), again_until,
                    toUnixTimestamp64Milli(lost_watermark))) AS latest
                  FROM ${ledger}.positions GROUP BY log, topic, partition
                )`,
      }),
    ),
  )
  const rows = byShard.flat()
  const ofLog = Map.groupBy(
    rows.filter(row => row.log === log),
    partitionName,
  )
  const complete = [...ofLog].filter(([, found]) => found.length === shards.length)
  return {
    ofLog: new Map(complete.map(([name, found]) => [name, found.reduce(lower)])),
    readUntil: new Map(
      [...Map.groupBy(rows, row => row.log)].map(([name, found]) => [
        name,
        Math.min(...found.map(({ readUntil }) => readUntil)),
      ]),
    ),
  }
}

/** The eras go up together; a shard with a lower one was restored alone. */
function lower(one: StoredPosition, other: StoredPosition): StoredPosition {
  const [low, high] = one.next <= other.next ? [one, other] : [other, one]
  return {
    ...low,
    era: Math.max(low.era, high.era),
    readUntil: Math.min(low.readUntil, high.readUntil),
    againUntil: Math.max(low.againUntil, high.againUntil),
    lostWatermark: Math.max(low.lostWatermark, high.lostWatermark),
  }
}

/**
 * Since when a partition that the tables do not know is followed. Tables that were filled from another log have missed deletions since
 * that one was read.
 */
export function readUntilOfNew(stored: StoredPositions | undefined, now: number): number {
  return Math.max(...(stored?.readUntil.values() ?? []), 0) || now
}

export function startOfLog(
  log: string,
  { topic, partition, low }: LogState['partitions'][number],
  readUntil: number,
): StoredPosition {
  return {
    ...{ log, topic, partition, era: 0, next: low, lastAt: 0 },
    ...{ readUntil, againUntil: 0, lostWatermark: 0 },
  }
}

export async function writePositions(
  shards: readonly Shard[],
  rows: readonly StoredPosition[],
): Promise<void> {
  if (rows.length === 0) return
  const values = rows.map(row => [
    ...[row.log, row.topic, row.partition, row.era, row.next, Math.round(row.lastAt)],
    ...[row.readUntil, row.againUntil, row.lostWatermark],
  ])
  await Promise.all(
    shards.map(({ tables, databases: { ledger } }) =>
      tables.insert({ table: `${ledger}.positions`, columns, rows: encodeRows(columns, values) }),
    ),
  )
}
