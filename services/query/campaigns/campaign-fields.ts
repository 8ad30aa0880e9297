/**
 * The fields of a campaign, from the rows of `campaign_pages` and `campaign_by_slug`, whose fields are JSON arrays
 * (contracts/tables/0003-read-tables.sql), to what the API shows. Pure; the present time is an argument.
 *
 * The result has every field of its schema, and the schema parses it before it leaves (endpoints/endpoint.ts).
 */
import type { Project, ProjectDetail, Reward } from '../../../contracts/api/schemas.ts'
import type { PublicStatus } from '../../../contracts/events/event.ts'
import {
  campaignColumns,
  listColumns,
  type ShownColumns,
} from '../../../contracts/tables/campaign-columns.ts'

export interface ProjectRow extends ShownColumns<'list'> {
  status: PublicStatus
  updated_at: string
}

export interface ProjectDetailRow extends ProjectRow, ShownColumns<'detail'> {
  rewards: Reward[]
}

/** A public campaign with its texts, by slug or by id. See `projectDetailRowOf`. */
export interface CampaignBySlugRow {
  list_fields: string
  description: string
  risks: string
  reward_fields: string
}

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

const dayMs = 24 * 60 * 60 * 1000

/** A campaign as shown in lists. `now` is in Unix milliseconds. */
export function presentProject(row: ProjectRow, now: number): Project {
  const endDate = presentOptionalTimestamp(row.end_date)
  return {
    id: row.campaign_id,
    slug: row.slug,
    url: row.url,
    title: row.title,
    subtitle: row.subtitle,
    category: row.category,
    subcategory: row.subcategory,
    location: row.location,
    image_url: row.image_url,
    currency: row.currency,
    goal_amount: row.goal_amount,
    pledged_amount: row.pledged_amount,
    percent_funded: row.percent_funded,
    backer_count: row.backer_count,
    follower_count: row.follower_count,
    status: row.status,
    campaign_type: row.campaign_type,
    project_type: row.project_type,
    is_staff_pick: row.is_staff_pick,
    has_adult_content: row.has_adult_content,
    uses_ai: row.uses_ai,
    tags: row.tags,
    launch_date: presentOptionalTimestamp(row.launch_date),
    end_date: endDate,
    days_remaining: daysRemaining(endDate, now),
    created_at: presentTimestamp(row.created_at),
    updated_at: presentTimestamp(row.updated_at),
    creator: {
      name: row.creator_name,
      profile_url: row.creator_profile_url,
      avatar_url: row.creator_avatar_url,
    },
  }
}

/** A campaign as shown on its own page. */
export function presentProjectDetail(row: ProjectDetailRow, now: number): ProjectDetail {
  return {
    ...presentProject(row, now),
    description: row.description,
    risks: row.risks,
    rewards: row.rewards,
  }
}

/** ClickHouse's `2026-03-01 12:00:00.000` (UTC) as `2026-03-01T12:00:00.000Z`. */
export function presentTimestamp(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

/** Whole days until the end, rounded up; 0 if the end has passed or there is none. */
export function daysRemaining(endDate: string | null, now: number): number {
  return endDate === null ? 0 : Math.max(0, Math.ceil((Date.parse(endDate) - now) / dayMs))
}

function presentOptionalTimestamp(text: string | null): string | null {
  return text === null ? null : presentTimestamp(text)
}
