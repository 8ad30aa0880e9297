/** Parts of the ledgers. The pledges of a platform do not fit into the memory of one statement. */
import type { Databases, Tables } from '../../tables/port.ts'

const campaignsPerRange = 20_000
/** A statement looks at no more, if their ids are not long (parameter-parts.ts). */
export const idsPerStatement = 1_000

/** A set of campaigns: ids after `after` up to `upTo` (null: no bound), or a list of ids. */
export type Scope = { after: string | null; upTo: string | null } | { ids: readonly string[] }

/** Ranges of about 20,000 campaigns each. Together they cover all campaigns. */
export async function rangesOf(tables: Tables, { ledger }: Databases): Promise<Scope[]> {
  const [row] = await tables.rows<{ bounds: string[] }>({
    query: `SELECT arrayFilter((id, place) -> place % ${campaignsPerRange} = 0, ids, arrayEnumerate(ids)) AS bounds
            FROM (SELECT arraySort(groupUniqArray(campaign_id)) AS ids FROM ${ledger}.campaign_ledger)`,
  })
  const bounds = row?.bounds ?? []
  return [...bounds, null].map((upTo, place) => ({ after: bounds[place - 1] ?? null, upTo }))
}

/** The condition for a column `campaign_id`. */
export function conditionOf(scope: Scope): { condition: string; parameters: Record<string, unknown> } {
  if ('ids' in scope) {
    return { condition: 'campaign_id IN {ids:Array(String)}', parameters: { ids: [...scope.ids] } }
  }
  const { after, upTo } = scope
  const bounds = [
    ...(after === null ? [] : ['campaign_id > {after:String}']),
    ...(upTo === null ? [] : ['campaign_id <= {up_to:String}']),
  ]
  return {
    condition: bounds.length === 0 ? '1' : bounds.join(' AND '),
    parameters: { ...(after !== null && { after }), ...(upTo !== null && { up_to: upTo }) },
  }
}
