/**
 * Removes the history of deleted campaigns from disk (contracts/tables/0003-history.sql). The views leave it out at once. A
 * campaign that is only hidden keeps its rows: what was public then stays in the sums.
 */
import { idParts } from './parameter-parts.ts'
import type { CallOptions, Databases, Tables } from './port.ts'

export const historyTables = ['campaign_days', 'history_latest'] as const

export type HistoryTable = (typeof historyTables)[number]

// Of one statement, so that it stays short.
const campaignsMax = 500

/** The deleted campaigns that still have rows in this table. */
export async function findDeletedHistory(
  tables: Tables,
  { base, ledger }: Databases,
  table: HistoryTable,
  options: CallOptions = {},
): Promise<string[]> {
  const rows = await tables.rows<{ id: string }>(
    {
      // Nothing ranks after a tombstone, so the ledger needs no FINAL.
      query: `SELECT DISTINCT campaign_id AS id FROM ${base}.${table} WHERE campaign_id IN
                (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615)`,
    },
    options,
  )
  return rows.map(({ id }) => id)
}

/**
 * Removes all rows of these campaigns, and resolves when no query finds them any more. On a cluster: for each shard. The user
 * needs ALTER DELETE on the table. Rejects with `TablesError`.
 */
export async function removeHistory(
  tables: Tables,
  { base }: Databases,
  table: HistoryTable,
  campaigns: readonly string[],
): Promise<void> {
  for (const ids of idParts(campaigns, campaignsMax)) {
    await tables.run({
      query: `ALTER TABLE ${base}.${table} DELETE WHERE campaign_id IN {ids:Array(String)} SETTINGS mutations_sync = 2`,
      query_params: { ids },
    })
  }
}
