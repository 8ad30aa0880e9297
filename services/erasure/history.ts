/** Purges the history of deleted campaigns. The history of a campaign that is only hidden stays: the sums need it. */
import { findDeletedHistory, removeHistory } from '../tables/history.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { counted, type PurgedCopy, purged } from './report.ts'
import { deleteRows, type TablesPurge } from './tables.ts'

export async function purgeHistory(
  tables: Tables,
  databases: Databases,
  purge: TablesPurge,
): Promise<PurgedCopy> {
  const table = 'campaign_days'
  const copy = `table ${table}`
  const ids = await findDeletedHistory(tables, databases)
  if (ids.length === 0) return purged(copy, 'no deleted campaign')
  const what = `the rows of ${counted(ids.length, 'deleted campaign')}`
  if (purge.isDry) return purged(copy, `removes ${what}`)
  const remove = () => removeHistory(tables, databases, ids)
  return deleteRows(tables, databases, { table, remove }, purge, purged(copy, `removed ${what}`))
}
