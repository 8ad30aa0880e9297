/**
 * The rows of `campaign_pages` and `campaign_by_slug`, whose fields are JSON arrays (contracts/tables/0003-read-tables.sql).
 * Pure.
 */
import type { Reward } from '../../../contracts/api/schemas.ts'
import { campaignColumns, listColumns } from '../../../contracts/tables/campaign-columns.ts'
import type { CampaignBySlugRow, ProjectDetailRow, ProjectRow } from './rows.ts'

const fieldNames: readonly string[] = [...listColumns, 'updated_at']
const numberNames = new Set<string>(
  campaignColumns.filter(({ type }) => /^(?:UInt|Decimal)/.test(type)).map(({ name }) => name),
)
const fields = fieldNames.map(name => ({ name, isNumber: numberNames.has(name) }))

/** A row from its `list_fields`. Throws if it has another number of fields. */
export function projectRowOf(listFields: string): ProjectRow {
  const values: unknown[] = JSON.parse(listFields)
  if (values.length !== fields.length) {
    throw new Error(`a campaign has ${values.length} list fields instead of ${fields.length}`)
  }
  const row: Record<string, unknown> = {}
  // A server may be set to quote numbers, and the array was written by the server.
  for (const [at, { name, isNumber }] of fields.entries())
    row[name] = isNumber ? Number(values[at]) : values[at]
  return row as unknown as ProjectRow
}

/** A row with its texts and reward tiers. */
export function projectDetailRowOf(row: CampaignBySlugRow): ProjectDetailRow {
  const { list_fields, description, risks, reward_fields } = row
  const rewards: RewardFields[] = JSON.parse(reward_fields)
  return { ...projectRowOf(list_fields), description, risks, rewards: rewards.map(rewardOf) }
}

type Numeric = number | string
type RewardFields = [string, string, string, Numeric, Numeric | null, Numeric, Numeric | null]

function rewardOf([
  reward_id,
  title,
  description,
  amount,
  available,
  claimed,
  remaining,
]: RewardFields): Reward {
  return {
    reward_id,
    title,
    description,
    amount: Number(amount),
    quantity_available: available === null ? null : Number(available),
    quantity_claimed: Number(claimed),
    quantity_remaining: remaining === null ? null : Number(remaining),
  }
}
