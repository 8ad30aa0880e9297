/**
 * Writes tables as `npm start` did when ClickHouse ran within its own process. It runs as a separate process, because a process
 * can have only one such engine.
 *
 *     node test/support/in-process-tables.ts TABLES_DIRECTORY ROWS_DIRECTORY
 *
 * ROWS_DIRECTORY has a file `database.table` in ClickHouse's Native format for each table that gets rows.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type ClickHouseClientConfigOptions, createClient } from '@clickhouse/client'
import { createChdbConnection } from 'chdb/connection'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { migrate } from '../../services/tables/migrate.ts'
import type { Tables } from '../../services/tables/port.ts'
import { decodeRows } from './row-binary.ts'

type InjectedConnection = NonNullable<ClickHouseClientConfigOptions['connection']>

const [directory = '', rowsDirectory = ''] = process.argv.slice(2)
// chDB is typed against its own copy of the client's types.
const connection = createChdbConnection({ path: directory }) as unknown as InjectedConnection
const client = createClient({ connection })
const tables: Tables = {
  async rows<Row>({ query }: { query: string }) {
    const result = await client.query({ query, format: 'JSONEachRow' })
    return result.json<Row>()
  },
  async run({ query }) {
    await client.command({ query })
  },
  async insert(insert) {
    for (const row of decodeRows(insert)) {
      const values = Object.values(row).map(value => `'${value}'`)
      await client.command({ query: `INSERT INTO ${insert.table} (${Object.keys(row)}) VALUES (${values})` })
    }
  },
  close: () => client.close(),
}
await migrate(tables, defaultDatabases)
for (const table of readdirSync(rowsDirectory)) {
  await tables.run({
    query: `INSERT INTO ${table} SELECT * FROM file('${join(rowsDirectory, table)}', Native) SETTINGS async_insert = 0`,
  })
}
await tables.close()
// The engine's threads would keep the process alive.
process.exit(0)
