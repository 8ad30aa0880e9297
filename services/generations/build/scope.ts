/** Parts of the ledgers. The pledges of a platform do not fit into the memory of one statement. */
import type { Databases, Tables } from '../../tables/port.ts'

const campaignsPerRange = 20_000

/** A set of campaigns: a condition (SQL) for a column `campaign_id`. */
export interface Scope {
  condition: string
  parameters: Record<string, unknown>
}

/** Ranges of about 20,000 campaigns each. Together they cover all campaigns. */
export async function rangesOf(tables: Tables, { ledger }: Databases): Promise<Scope[]> {
  const [row] = await tables.rows<{ bounds: string[] }>({
    query: `SELECT arrayFilter((id, place) -> place % ${campaignsPerRange} = 0, ids, arrayEnumerate(ids)) AS bounds
            FROM (SELECT arraySort(groupUniqArray(campaign_id)) AS ids FROM ${ledger}.campaign_ledger)`,
  })
  const bounds = row?.bounds ?? []
  return [...bounds, undefined].map((up_to, place) => {
    const after = bounds[place - 1]
    const ends = [
      ...(after === undefined ? [] : ['campaign_id > {after:String}']),
      ...(up_to === undefined ? [] : ['campaign_id <= {up_to:String}']),
    ]
    return { condition: ends.join(' AND ') || '1', parameters: { after: after ?? '', up_to: up_to ?? '' } }
  })
}

/** The campaigns of the batches that were logged since this moment (Unix ms, of ClickHouse's clock). */
export function changedSince({ ledger }: Databases, since: number): Scope {
  return {
    condition: `campaign_id IN (SELECT arrayJoin(campaign_ids) FROM ${ledger}.batch_log
        WHERE appended_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC'))`,
    parameters: { since },
  }
}

/** ClickHouse's clock, Unix ms. */
export async function readClock(tables: Pick<Tables, 'rows'>): Promise<number> {
  const [row] = await tables.rows<{ now: number }>({
    query: "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now",
  })
  if (row === undefined) throw new Error('ClickHouse told no time')
  return row.now
}
