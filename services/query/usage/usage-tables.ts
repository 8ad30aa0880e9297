/** What a query process writes of the usage: rows of counts. Pure. */
import type { Databases, TableInsert } from '../../tables/port.ts'
import { encodeRows } from '../../tables/row-binary.ts'
import type { UsageBatch } from './usage-counts.ts'

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

/** `version`: above that of every earlier insert of the process. */
export function countsInsert({ base }: Databases, { rows }: UsageBatch, version: number): TableInsert {
  return {
    table: `${base}.api_key_usage`,
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
