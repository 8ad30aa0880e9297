/** The bodies of the API. Generated from the OpenAPI document: do not edit, run "npm run contracts". */

/** The number of public campaigns in a category. */
export interface CategoryCount {
  category: string
  project_count: number
}

/** The public profile of the campaign's creator. */
export interface Creator {
  name: string
  profile_url: string
  avatar_url: string | null
}

export interface Pagination {
  /** The number of campaigns that match the query, on all pages. */
  total: number
  limit: number
  offset: number
  /** Whether there is another page after this one. */
  has_more: boolean
}

/** A public campaign as shown in lists. */
export interface Project {
  /** An opaque, stable identifier. */
  id: string
  /**
   * The URL-safe name, used in the path of the detail. It may change; then the old name is not found any
   * more.
   */
  slug: string
  /** The campaign's page on the platform. */
  url: string
  title: string
  subtitle: string | null
  /** The value that the query parameter `category` must equal. */
  category: string
  subcategory: string | null
  /** A place, as free text. */
  location: string | null
  image_url: string | null
  /** The ISO 4217 code of all amounts of this campaign. */
  currency: string
  /** The funding goal, in major units of `currency`. */
  goal_amount: number
  /** The sum of all valid pledges, in major units of `currency`. */
  pledged_amount: number
  /** 100 * pledged_amount / goal_amount, with two decimals. Above 100 if overfunded; 0 if the goal is 0. */
  percent_funded: number
  /** The number of distinct backers with a valid pledge. */
  backer_count: number
  follower_count: number
  status: 'LIVE' | 'FUNDED' | 'FAILED' | 'CANCELLED'
  campaign_type: string
  project_type: string
  is_staff_pick: boolean
  has_adult_content: boolean
  uses_ai: boolean
  tags: string[]
  launch_date: string | null
  end_date: string | null
  /** Whole days until end_date, rounded up; 0 if it has passed or there is none. */
  days_remaining: number
  /** A moment in UTC: ISO 8601 with milliseconds and a trailing Z. */
  created_at: string
  creator: Creator
}

/** A public campaign with its texts and reward tiers. */
export interface ProjectDetail {
  /** An opaque, stable identifier. */
  id: string
  /**
   * The URL-safe name, used in the path of the detail. It may change; then the old name is not found any
   * more.
   */
  slug: string
  /** The campaign's page on the platform. */
  url: string
  title: string
  subtitle: string | null
  /** The value that the query parameter `category` must equal. */
  category: string
  subcategory: string | null
  /** A place, as free text. */
  location: string | null
  image_url: string | null
  /** The ISO 4217 code of all amounts of this campaign. */
  currency: string
  /** The funding goal, in major units of `currency`. */
  goal_amount: number
  /** The sum of all valid pledges, in major units of `currency`. */
  pledged_amount: number
  /** 100 * pledged_amount / goal_amount, with two decimals. Above 100 if overfunded; 0 if the goal is 0. */
  percent_funded: number
  /** The number of distinct backers with a valid pledge. */
  backer_count: number
  follower_count: number
  status: 'LIVE' | 'FUNDED' | 'FAILED' | 'CANCELLED'
  campaign_type: string
  project_type: string
  is_staff_pick: boolean
  has_adult_content: boolean
  uses_ai: boolean
  tags: string[]
  launch_date: string | null
  end_date: string | null
  /** Whole days until end_date, rounded up; 0 if it has passed or there is none. */
  days_remaining: number
  /** A moment in UTC: ISO 8601 with milliseconds and a trailing Z. */
  created_at: string
  creator: Creator
  description: string
  risks: string
  rewards: Reward[]
}

export interface ProjectListBody {
  data: Project[]
  pagination: Pagination
}

/** A reward tier. */
export interface Reward {
  /** Unique within its campaign. */
  reward_id: string
  title: string
  description: string
  /** The price of the tier, in major units of the campaign's currency. */
  amount: number
  /** The total quantity; null if unlimited. */
  quantity_available: number | null
  /** The number of valid pledges for this tier. */
  quantity_claimed: number
  /** The quantity that is left; null if unlimited. */
  quantity_remaining: number | null
}

/** Statistics of the public campaigns of the platform. */
export interface Stats {
  /** The ISO 4217 code of the amounts in this object. */
  currency: string
  /** The sum of all valid pledges to public campaigns. */
  total_raised: number
  total_pledges: number
  /**
   * The number of distinct backers. A backer of several campaigns counts once. It may include a backer
   * shortly before the pledge is in total_pledges, but is never above total_pledges.
   */
  total_backers: number
  total_creators: number
  projects_total: number
  projects_live: number
  projects_funded: number
  /**
   * The percentage of ended campaigns that were funded: 100 * FUNDED / (FUNDED + FAILED + CANCELLED), with
   * two decimals, rounded half up.
   */
  success_rate: number
  /**
   * total_raised / total_pledges, rounded half up to the decimals of `currency` (two for USD, none for JPY);
   * 0 if there are no pledges.
   */
  average_pledge: number
  categories: CategoryCount[]
  /** The time at which these numbers were computed. */
  generated_at: string
}
