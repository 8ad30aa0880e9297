/** The ledgers as a rebuild compares them: which rows are withdrawn, and statements over the live and the new ledger. */
import { ledgerCampaignColumns, pledgeColumns } from '../../projector/ingest/ledger-rows.ts'
import type { Databases } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'

export interface Ledger {
  name: 'campaign_ledger' | 'pledge_ledger'
  key: readonly string[]
  columns: readonly string[]
  /** SQL: the row has no content to show, because the entity was deleted, hidden or cancelled. */
  withdrawn: string
}

export const ledgers: readonly Ledger[] = [
  {
    name: 'campaign_ledger',
    key: ['campaign_id'],
    columns: ledgerCampaignColumns.map(({ name }) => name),
    withdrawn: 'NOT is_public',
  },
  {
    name: 'pledge_ledger',
    key: ['campaign_id', 'pledge_id'],
    columns: pledgeColumns.map(({ name }) => name),
    withdrawn: 'NOT counts',
  },
]

/** The current generation, and the one that is built. */
export interface Sides {
  live: Databases
  rebuilt: Databases
}

const files = {
  differing: readSql('differing', import.meta.url),
  withdrawn: readSql('withdrawn', import.meta.url),
  missing: readSql('missing', import.meta.url),
}

/** Selects the columns of the rows that are withdrawn in the live ledger, but not in the new ledger. `scope`: SQL. */
export function withdrawnQuery(ledger: Ledger, sides: Sides, scope: string): string {
  return fill(files.withdrawn, ledger, sides, { scope, rows: ledger.withdrawn })
}

/** Selects what `Missing` says, at most `rowsMax` rows. `scope`: SQL. */
export function missingQuery(ledger: Ledger, sides: Sides, scope: string, rowsMax: number): string {
  return fill(files.missing, ledger, sides, { scope, rows: '1' }).replaceAll('${rows_max}', String(rowsMax))
}

function fill(
  sql: string,
  { name, key, columns, withdrawn }: Ledger,
  { live, rebuilt }: Sides,
  { scope, rows }: { scope: string; rows: string },
): string {
  return sql
    .replaceAll('${differing}', files.differing)
    .replaceAll('${owner}', key[0] ?? '')
    .replaceAll('${rows}', rows)
    .replaceAll('${live}', live.ledger)
    .replaceAll('${rebuilt}', rebuilt.ledger)
    .replaceAll('${ledger}', name)
    .replaceAll('${columns}', columns.join(', '))
    .replaceAll('${key}', key.join(', '))
    .replaceAll('${withdrawn}', withdrawn)
    .replaceAll('${scope}', scope)
}
