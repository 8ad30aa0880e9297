/** Purges what a killed `rebuild stamps` has left: ids and hashes of campaigns of other tables (rebuild/staged-stamps.ts). */
import { dropStaged, listStaged } from '../rebuild/staged-stamps.ts'
import type { Shard } from '../shared/tables/port.ts'
import { counted, type PurgedCopy, purged } from './report.ts'
import type { TablesPurge } from './tables.ts'

/** No entry if nothing is left. One that runs now fails, and can be run again. */
export async function purgeStagedStamps(
  shard: Shard,
  { isDry }: Pick<TablesPurge, 'isDry'>,
): Promise<PurgedCopy[]> {
  const left = counted((await listStaged(shard)).length, 'table')
  if (left === '0 tables') return []
  if (!isDry) await dropStaged(shard)
  return [purged('stamps of other tables', `${isDry ? 'drops' : 'dropped'} ${left}`)]
}
