/** Asks the in-process ClickHouse for its version, in a process that then lets go of it. */
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { benchInput, serveBench } from './bench-process.ts'

const tables = openChdbTables(benchInput<{ directory: string }>().directory)
const [row] = await tables.rows<{ version: string }>({ query: 'SELECT version() AS version' })
serveBench({ ready: { version: row?.version ?? 'unknown' }, close: () => tables.close() })
