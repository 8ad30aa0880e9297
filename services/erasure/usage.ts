/** Purges the usage of keys that are deleted. The usage of a revoked key stays: its account still sees it. */
import type { Databases, Tables } from '../tables/port.ts'
import { removeUsage } from '../tables/usage.ts'
import { counted, type PurgedCopy, purged } from './report.ts'
import { deleteRows, type TablesPurge } from './tables.ts'

const table = 'api_key_usage'

export async function purgeUsage(
  tables: Tables,
  databases: Databases,
  purge: TablesPurge,
): Promise<PurgedCopy> {
  const copy = `table ${table}`
  const rows = await tables.rows<{ key: string }>({
    // A deleted key leaves a tombstone, which has no account.
    query: `SELECT DISTINCT api_key AS key FROM ${databases.base}.${table}
            WHERE api_key IN (SELECT api_key FROM ${databases.base}.api_key_ledger FINAL WHERE account_id = '')`,
  })
  if (rows.length === 0) return purged(copy, 'no deleted key')
  const what = `the rows of ${counted(rows.length, 'deleted key')}`
  if (purge.isDry) return purged(copy, `removes ${what}`)
  const keys = rows.map(({ key }) => key)
  const remove = () => removeUsage({ tables, databases }, keys)
  return deleteRows(tables, databases, { table, remove }, purge, purged(copy, `removed ${what}`))
}
