/** A platform of any size, inserted directly into the ledger as projectors would have left it, ready to be folded. */
import { readFileSync } from 'node:fs'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { nameDatabases } from '../../../services/tables/sql-text.ts'

export interface PlatformSize {
  campaigns: number
  pledges: number
}

/** Loads campaigns and pledges, computed from their numbers, and the batches that touched them. */
export async function loadPlatform(tables: Tables, databases: Databases, size: PlatformSize): Promise<void> {
  const counts = { ...size, backers: Math.ceil(size.pledges / 3), campaigns_per_batch: 50_000 }
  for (const name of ['campaigns', 'pledges', 'batches']) {
    const sql = readFileSync(new URL(`${name}.sql`, import.meta.url), 'utf8')
    await tables.run({ query: nameDatabases(sql, databases), query_params: counts })
  }
}

/** The id of the campaign with this number. */
export function campaignIdOf(number: number): string {
  return `cmp_${String(number).padStart(7, '0')}`
}
