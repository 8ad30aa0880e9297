/**
 * Purges what the base database has of deleted campaigns and keys. The history of a campaign that is only hidden stays: the sums need it.
 * The usage of a revoked key stays: its account still sees it.
 */
import { findDeletedHistory, removeRows } from '../tables/deleted.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { counted, type PurgedCopy, purged } from './report.ts'
import { deleteRows, type TablesPurge } from './tables.ts'

export async function purgeDeleted(
  tables: Tables,
  databases: Databases,
  purge: TablesPurge,
): Promise<PurgedCopy[]> {
  const campaigns = await findDeletedHistory(tables, databases)
  const removeDays = () => removeRows({ tables, databases }, 'campaign_days', campaigns)
  const days = await purgeOne('campaign_days', 'deleted campaign', campaigns, removeDays)
  const keys = await deletedKeys(tables, databases)
  const ofKeys = (table: 'api_key_requests' | 'api_key_usage') =>
    purgeOne(table, 'deleted key', keys, () => removeRows({ tables, databases }, table, keys))
  // The keys are found by their counts, so these go last.
  return [days, await ofKeys('api_key_requests'), await ofKeys('api_key_usage')]

  async function purgeOne(
    table: string,
    what: string,
    ids: readonly string[],
    remove: () => Promise<void>,
  ): Promise<PurgedCopy> {
    const copy = `table ${table}`
    if (ids.length === 0) return purged(copy, `no ${what}`)
    const done = `the rows of ${counted(ids.length, what)}`
    if (purge.isDry) return purged(copy, `removes ${done}`)
    return deleteRows(tables, databases, { table, remove }, purge, purged(copy, `removed ${done}`))
  }
}

/** A deleted key leaves a tombstone, which has no account. */
async function deletedKeys(tables: Tables, { base }: Databases): Promise<string[]> {
  const rows = await tables.rows<{ key: string }>({
    query: `SELECT DISTINCT api_key AS key FROM ${base}.api_key_usage
            WHERE api_key IN (SELECT api_key FROM ${base}.api_key_ledger FINAL WHERE account_id = '')`,
  })
  return rows.map(({ key }) => key)
}
