/**
 * Removes rows of what was deleted from the base database: the usage of keys and the history of campaigns. The views leave out a deleted
 * campaign at once. One that is only hidden keeps its history: what was public then stays in the sums.
 */
import { idChunks } from './clickhouse/statements.ts'
import type { CallOptions, Databases, Shard, Tables } from './port.ts'

const keyOf = { campaign_days: 'campaign_id', api_key_usage: 'api_key', api_key_requests: 'api_key' } as const

// Of one statement, so that it stays short.
const idsMax = 500

/**
 * Removes all rows of these campaigns or keys, and resolves when no query finds them any more. A process that has just answered a key may
 * write a count some seconds later. On a cluster: for each shard. The user needs ALTER DELETE on the table. Rejects with `TablesError`.
 */
export async function removeRows(
  { tables, databases }: Shard,
  table: keyof typeof keyOf,
  ids: readonly string[],
): Promise<void> {
  for (const some of idChunks(ids, idsMax)) {
    await tables.run({
      query: `ALTER TABLE ${databases.base}.${table} DELETE WHERE ${keyOf[table]} IN {ids:Array(String)} SETTINGS mutations_sync = 2`,
      query_params: { ids: some },
    })
  }
}

/** The deleted campaigns that still have a history. */
export async function findDeletedDays(
  tables: Tables,
  { base, ledger }: Databases,
  options: CallOptions = {},
): Promise<string[]> {
  const rows = await tables.rows<{ id: string }>(
    {
      // Nothing ranks after a tombstone, so the ledger needs no FINAL.
      query: `SELECT DISTINCT campaign_id AS id FROM ${base}.campaign_days WHERE campaign_id IN
                (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615)`,
    },
    options,
  )
  return rows.map(({ id }) => id)
}
