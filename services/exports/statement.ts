/**
 * The statements of a whole copy. Pure.
 *
 * A copy is two files with the same campaigns, but each statement of ClickHouse reads the tables as they are when it starts. So
 * one statement copies the campaigns into a temporary table of the session, and both files are written from that. ClickHouse drops the
 * table with the session.
 */
import { daysRemainingSql } from '../../contracts/api/conventions.ts'
import { shownColumns } from '../../contracts/api/schemas.ts'
import type { Databases, Statement } from '../tables/port.ts'

/**
 * The watermark, and the time, both in Unix milliseconds: one row of type `MomentRow`. What is read after it has every change with an
 * earlier stamp (contracts/tables/generation/0002-batches.sql).
 */
export function momentStatement({ read }: Pick<Databases, 'read'>): Statement {
  return {
    query: `SELECT
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS now,
    ifNull((SELECT toUnixTimestamp64Milli(reached) FROM ${read}.watermark), 0) AS as_of`,
  }
}

export interface MomentRow {
  now: number
  as_of: number
}

/**
 * Copies every public campaign into the temporary table, with the fields of a detail under the API's names. `now`: the moment for
 * `days_remaining`, Unix milliseconds.
 */
export function copyStatement({ read }: Pick<Databases, 'read'>, now: number): Statement {
  return {
    query: `CREATE TEMPORARY TABLE copied_campaigns ENGINE = MergeTree ORDER BY id AS
SELECT
    ${detailFields().join(',\n    ')}
FROM ${read}.campaigns FINAL`,
    query_params: { now },
  }
}

/** ClickHouse drops the table with the session, but keeps its files for some minutes then. */
export const dropStatement: Statement = { query: 'DROP TEMPORARY TABLE IF EXISTS copied_campaigns SYNC' }

export const countStatement: Statement = { query: 'SELECT count() AS campaigns FROM copied_campaigns' }

const copied = 'SELECT * FROM copied_campaigns ORDER BY id'

/** Each line is a campaign as the API shows it on its own page, whatever the server's profile says about JSON. */
export const linesStatement: Statement = {
  query: `${copied}
SETTINGS date_time_output_format = 'iso', output_format_json_quote_64bit_integers = 0, output_format_json_quote_decimals = 0,
    output_format_decimal_trailing_zeros = 0, output_format_json_escape_forward_slashes = 0,
    output_format_json_named_tuples_as_objects = 1
FORMAT JSONEachRow`,
}

// Writing keeps a few groups of rows in memory. Readers take the groups side by side.
export const parquetStatement: Statement = {
  query: `${copied}
SETTINGS output_format_parquet_row_group_size = 50000, output_format_parquet_compression_method = 'zstd',
    output_format_parquet_string_as_string = 1
FORMAT Parquet`,
}

function detailFields(): string[] {
  const { list, detail } = shownColumns
  const own = [...list, ...detail].filter(({ part }) => part === undefined)
  const creator = list.filter(({ part }) => part !== undefined)
  const types = creator.map(({ part, column }) => `${part} ${column.type}`).join(', ')
  return [
    ...own.flatMap(({ column: { name }, field }) => [
      name === field ? name : `${name} AS ${field}`,
      ...(field === 'end_date' ? [`${daysRemainingSql} AS days_remaining`] : []),
      ...(field === 'created_at' ? ['updated_at'] : []),
    ]),
    `CAST((${creator.map(({ column }) => column.name).join(', ')}), 'Tuple(${types})') AS creator`,
  ]
}
