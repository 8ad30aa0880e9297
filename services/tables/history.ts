/**
 * Removes the history of deleted campaigns from disk (contracts/tables/0003-history.sql). The views leave it out at once. A
 * campaign that is only hidden keeps its rows: what was public then stays in the sums.
 */
import { idParts } from './parameter-parts.ts'
import type { CallOptions, Databases, Tables } from './port.ts'

// Of one statement, so that it stays short.
const campaignsMax = 500

/** The deleted campaigns that still have rows. */
export async function findDeletedHistory(
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

/**
 * Removes all rows of these campaigns, and resolves when no query finds them any more. On a cluster: for each shard. The user
 * needs ALTER DELETE on the table. Rejects with `TablesError`.
 */
export async function removeHistory(
  tables: Tables,
  { base }: Databases,
  campaigns: readonly string[],
): Promise<void> {
  for (const ids of idParts(campaigns, campaignsMax)) {
    await tables.run({
      query: `ALTER TABLE ${base}.campaign_days DELETE WHERE campaign_id IN {ids:Array(String)} SETTINGS mutations_sync = 2`,
      query_params: { ids },
    })
  }
}
