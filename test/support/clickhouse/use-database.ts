import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { encodeRows } from '../../../services/tables/clickhouse/row-binary.ts'
import type { TableInsert, Tables } from '../../../services/tables/port.ts'
import { clickHouseService } from '../services/clickhouse.ts'
import { useService } from '../services/test-service.ts'
import { settingsFor } from './clickhouse.ts'

/** A database of the suite's own, on any ClickHouse, through the adapter of the program. */
export function useDatabase() {
  const server = useService(clickHouseService)
  const database = `test_${randomUUID().replaceAll('-', '')}`
  let tables: Tables

  beforeAll(async () => {
    tables = openTables(settingsFor(server()))
    await tables.run({ query: `CREATE DATABASE ${database}` })
  })

  afterAll(async () => {
    await tables?.run({ query: `DROP DATABASE ${database}` })
    await tables?.close()
  })

  return {
    server,
    tables: () => tables,

    /** Creates an empty table with these columns, and resolves with its name. */
    async freshTable(columns: string): Promise<string> {
      const table = `${database}.t_${randomUUID().replaceAll('-', '')}`
      await tables.run({ query: `CREATE TABLE ${table} (${columns}) ENGINE = MergeTree ORDER BY tuple()` })
      return table
    },
  }
}

/** `types`: of the columns, by their names. */
export function rowsOf(
  table: string,
  types: Readonly<Record<string, string>>,
  rows: unknown[][],
): TableInsert {
  const columns = Object.entries(types).map(([name, type]) => ({ name, type }))
  return { table, columns, rows: encodeRows(columns, rows) }
}
