/**
 * A process of its own that fills all but one of its lanes with slow statements and then runs a quick one; it prints
 * the order in which they ended. (Inside a test runner the thread pool has its size already.)
 *
 *     node test/support/side-by-side-child.ts DATA_DIRECTORY LANES
 */
import { openChdbTables } from '../../services/shared/tables/chdb.ts'

const [directory = '', lanes = ''] = process.argv.slice(2)
const lanesMax = Number(lanes)
const tables = openChdbTables(directory, { lanesMax })
const ended: string[] = []
const slow = Array.from({ length: lanesMax - 1 }, () =>
  tables.rows({ query: 'SELECT sleep(1.5)' }).then(() => ended.push('slow')),
)
await Promise.all([...slow, tables.rows({ query: 'SELECT 1' }).then(() => ended.push('quick'))])
await tables.close()
process.stdout.write(`${JSON.stringify(ended)}\n`)
