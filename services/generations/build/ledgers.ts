/** The ledgers as a rebuild compares them: what the live ledger has and the new one does not. */
import { ledgerCampaignColumns, pledgeColumns } from '../../projector/ingest/ledger-rows.ts'
import type { Databases } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'

export interface Ledger {
  name: 'campaign_ledger' | 'pledge_ledger'
  key: string
  columns: string
  /** SQL: the row has no content to show, because the entity was deleted, hidden or cancelled. */
  withdrawn: string
}

const namesOf = (columns: readonly { name: string }[]) => columns.map(({ name }) => name).join(', ')

export const ledgers: readonly Ledger[] = [
  {
    name: 'campaign_ledger',
    key: 'campaign_id',
    columns: namesOf(ledgerCampaignColumns),
    withdrawn: 'NOT is_public',
  },
  {
    name: 'pledge_ledger',
    key: 'campaign_id, pledge_id',
    columns: namesOf(pledgeColumns),
    withdrawn: 'NOT counts',
  },
]

/** The current generation, and the one that is built. */
export interface Sides {
  live: Databases
  rebuilt: Databases
}

const newer = readSql('newer', import.meta.url)

/** Selects the entities of which the live ledger has a newer version. `scope`: SQL. `rows`: SQL; only these rows of the live ledger. */
export function newerQuery(
  { name, key, withdrawn }: Ledger,
  { live, rebuilt }: Sides,
  scope: string,
  rows = '1',
): string {
  return newer
    .replaceAll('${live}', live.ledger)
    .replaceAll('${rebuilt}', rebuilt.ledger)
    .replaceAll('${ledger}', name)
    .replaceAll('${key}', key)
    .replaceAll('${withdrawn}', withdrawn)
    .replaceAll('${rows}', rows)
    .replaceAll('${scope}', scope)
}
