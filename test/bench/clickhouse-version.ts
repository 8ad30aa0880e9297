/** Asks ClickHouse for its version. */
import { openOwnTables } from '../support/clickhouse/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'

const { tables, close } = await openOwnTables(benchInput<{ directory: string }>())
const [row] = await tables.rows<{ version: string }>({ query: 'SELECT version() AS version' })
serveBench({ ready: { version: row?.version ?? 'unknown' }, close })
