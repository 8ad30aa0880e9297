/** Rows of the views, as JSON brings them: decimals are numbers, timestamps are `YYYY-MM-DD hh:mm:ss.mmm` in UTC. */
import type { Reward } from '../../contracts/api/schemas.ts'
import type { PublicStatus } from '../../contracts/events/event.ts'

export interface SnapshotRow {
  /** Joined by `idSeparator`; empty when there are none. */
  ids: string
  total: number
  as_of: string
}

/** Moments are Unix milliseconds. */
export interface ChangesRow {
  read_at: number
  ids: string[]
  /** Public campaigns in all. */
  total: number
}

/** What lists filter and sort by: a campaign at each place of all arrays. Moments are Unix ms, `noDate` for none. */
export interface EntriesRow {
  ids: string[]
  statuses: string[]
  categories: string[]
  launch_dates: number[]
  end_dates: number[]
  /** In the platform's currency. */
  pledged: number[]
  backers: number[]
  updates: number[]
}

export interface ChangedEntriesRow extends EntriesRow {
  /** Public campaigns in all, those that did not change included. */
  total: number
}

export interface ProjectRow {
  campaign_id: string
  slug: string
  url: string
  title: string
  subtitle: string | null
  category: string
  subcategory: string | null
  location: string | null
  image_url: string | null
  currency: string
  goal_amount: number
  pledged_amount: number
  percent_funded: number
  backer_count: number
  follower_count: number
  status: PublicStatus
  campaign_type: string
  project_type: string
  is_staff_pick: boolean
  has_adult_content: boolean
  uses_ai: boolean
  tags: string[]
  launch_date: string | null
  end_date: string | null
  created_at: string
  creator_name: string
  creator_profile_url: string
  creator_avatar_url: string | null
  updated_at: string
}

export interface ProjectDetailRow extends ProjectRow {
  description: string
  risks: string
  rewards: Reward[]
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
  /** Of the category at the same place. */
  category_projects: number[]
  generated_at: string
}
