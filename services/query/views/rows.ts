/** Rows of the views as parsed from JSON: decimals are numbers, timestamps are `YYYY-MM-DD hh:mm:ss.mmm` in UTC. */
import type { Reward } from '../../../contracts/api/schemas.ts'
import type { PublicStatus } from '../../../contracts/events/event.ts'
import type { ShownColumns } from '../../../contracts/tables/campaign-columns.ts'

export interface SnapshotRow {
  /** Joined by `idSeparator`; empty if there are none. */
  ids: string
  total: number
  as_of: string
}

/** Times are Unix milliseconds. */
export interface ChangesRow {
  read_at: number
  as_of: number
  ids: string[]
  /** When the campaign with the same index changed; `severalChanges` if it changed several times. */
  stamps: number[]
  /** The number of public campaigns; null if it was not asked for. */
  total: number | null
}

/**
 * The fields that lists filter and sort by. Index n of every array is the same campaign. Moments are Unix ms; `noDate`
 * if there is none.
 */
export interface EntriesRow {
  ids: string[]
  statuses: string[]
  categories: string[]
  /** See `slugCodeOf` in lists/slug-index.ts. */
  slug_codes: number[]
  launch_dates: number[]
  end_dates: number[]
  /** In the platform's currency. */
  pledged: number[]
  backers: number[]
  updates: number[]
}

export interface ChangedEntriesRow extends EntriesRow {
  /** The number of all public campaigns, including those that did not change; null if it was not asked for. */
  total: number | null
}

export interface ProjectRow extends ShownColumns<'list'> {
  status: PublicStatus
  updated_at: string
}

export interface ProjectDetailRow extends ProjectRow, ShownColumns<'detail'> {
  rewards: Reward[]
}

/** A public campaign for a page. `list_fields`: see `projectRowOf`. */
export interface CampaignPageRow {
  campaign_id: string
  list_fields: string
}

/** A public campaign with its texts, by slug or by id. See `projectDetailRowOf`. */
export interface CampaignBySlugRow {
  list_fields: string
  description: string
  risks: string
  reward_fields: string
}

export interface StatsRow {
  total_raised: number
  total_pledges: number
  total_backers: number
  total_creators: number
  projects_total: number
  projects_live: number
  projects_funded: number
  projects_failed: number
  projects_cancelled: number
  categories: string[]
  /** The number of projects of the category with the same index. */
  category_projects: number[]
  generated_at: string
}
