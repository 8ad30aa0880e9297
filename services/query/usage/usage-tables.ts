/** What a query process writes of the usage: rows of counts, and the row of its own run. Pure. */
import type { Databases, Statement, TableInsert } from '../../shared/tables/port.ts'
import { encodeRows } from '../../shared/tables/row-binary.ts'
import type { UsageBatch } from './usage-counts.ts'

/** The row of a run. Times are Unix milliseconds. */
export interface UsageRun {
  process: string
  started_at: number
  counts_from: number
  is_only: boolean
  complete_until: number
  /** 0: never. */
  lost_at: number
  is_ended: boolean
}

/** What the tables say before a process writes its run. */
export interface EarlierRuns {
  runs: number
  counts_from: number
  keys: number
}

const minuteMs = 60_000
const time = "DateTime64(3, 'UTC')"

const countColumns = [
  { name: 'api_key', type: 'String' },
  { name: 'minute', type: time },
  { name: 'process', type: 'LowCardinality(String)' },
  { name: 'version', type: 'UInt64' },
  { name: 'ok', type: 'UInt32' },
  { name: 'not_modified', type: 'UInt32' },
  { name: 'unauthorized', type: 'UInt32' },
  { name: 'too_many', type: 'UInt32' },
  { name: 'other', type: 'UInt32' },
  { name: 'deprecated', type: 'UInt32' },
]

const runColumns = [
  { name: 'process', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'started_at', type: time },
  { name: 'counts_from', type: time },
  { name: 'is_only', type: 'Bool' },
  { name: 'complete_until', type: time },
  { name: 'lost_at', type: time },
  { name: 'is_ended', type: 'Bool' },
]

/** `version`: above that of every earlier insert of the process. */
export function countsInsert({ model }: Databases, { rows }: UsageBatch, version: number): TableInsert {
  return {
    table: `${model}.api_key_usage`,
    columns: countColumns,
    rows: encodeRows(
      countColumns,
      rows.map(row => [
        row.key,
        row.minute * minuteMs,
        row.process,
        version,
        row.ok,
        row.not_modified,
        row.unauthorized,
        row.too_many,
        row.other,
        row.deprecated,
      ]),
    ),
  }
}

export function runInsert({ model }: Databases, run: UsageRun, version: number): TableInsert {
  const values = [
    run.process,
    version,
    run.started_at,
    run.counts_from,
    run.is_only,
    run.complete_until,
    run.lost_at,
    run.is_ended,
  ]
  return { table: `${model}.usage_runs`, columns: runColumns, rows: encodeRows(runColumns, [values]) }
}

/** One row of type `EarlierRuns`. */
export function earlierRunsStatement({ model }: Databases): Statement {
  return {
    query: `SELECT count() AS runs, toUnixTimestamp64Milli(min(counts_from)) AS counts_from,
              (SELECT count() FROM ${model}.api_keys) AS keys
            FROM ${model}.usage_runs`,
  }
}
