/** The bodies of the API. Generated from the OpenAPI document: do not edit, run "npm run contracts". */

/** The number of public campaigns in a category. */
export interface CategoryCount {
  /** The value of `category` of these campaigns. */
  category: string
  /** The number of public campaigns in the category. */
  project_count: number
}

/** The public profile of the campaign's creator. */
export interface Creator {
  /** The public name. */
  name: string
  /** The creator's page on the platform. */
  profile_url: string
  /** The web address of the creator's picture; null if there is none. */
  avatar_url: string | null
}

/** The place of this page in the whole list. */
export interface Pagination {
  /** The number of campaigns that match the query, on all pages. */
  total: number
  /** The largest number of campaigns on this page, as requested. */
  limit: number
  /** The number of campaigns before this page, as requested. */
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
  /** The title, as plain text. */
  title: string
  /** The subtitle, as plain text; null if there is none. */
  subtitle: string | null
  /** The value that the query parameter `category` must equal. */
  category: string
  /** A narrower category within `category`; null if there is none. */
  subcategory: string | null
  /** A place, as free text; null if there is none. */
  location: string | null
  /** The web address of the main picture; null if there is none. */
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
  /** The number of people who follow the campaign. */
  follower_count: number
  /**
   * LIVE: it runs. FUNDED: it ended and reached its goal. FAILED: it ended without. CANCELLED: its creator
   * ended it. A campaign with any other status is not public.
   */
  status: 'LIVE' | 'FUNDED' | 'FAILED' | 'CANCELLED'
  /** How the campaign is funded. The platform may add values. */
  campaign_type: string
  /** What kind of project it is. The platform may add values. */
  project_type: string
  /** Whether the platform's staff recommend it. */
  is_staff_pick: boolean
  /** Whether it is marked as adult content. */
  has_adult_content: boolean
  /** Whether the creator declared the use of generative AI. */
  uses_ai: boolean
  /** Free labels; empty if there are none. */
  tags: string[]
  /**
   * When the campaign began; null if that is not known. ISO 8601 in UTC, with milliseconds and a trailing Z.
   */
  launch_date: string | null
  /**
   * When the campaign ends or ended; null if that is not known. ISO 8601 in UTC, with milliseconds and a
   * trailing Z.
   */
  end_date: string | null
  /**
   * Whole days until `end_date`, rounded up; 0 if it has passed or there is none. It was right when the
   * response was computed, and decreases with time. That is not a change of the campaign: `updated_since`
   * does not report it. A mirror must compute it itself from `end_date`.
   */
  days_remaining: number
  /** When the campaign was created. ISO 8601 in UTC, with milliseconds and a trailing Z. */
  created_at: string
  /**
   * When something that readers can see of this campaign last changed: a list field, its texts or its
   * rewards. Of two copies of one campaign, the one with the later value is the newer. Do not send it as
   * `updated_since`: changes with an earlier value may still become visible. Send `X-Data-As-Of`. ISO 8601 in
   * UTC, with milliseconds and a trailing Z.
   */
  updated_at: string
  creator: Creator
}

/** A public campaign with its texts and reward tiers. */
export interface ProjectDetail extends Project {
  /** The campaign's full description, as the creator wrote it. */
  description: string
  /** What the creator says about risks and challenges. */
  risks: string
  /** The reward tiers in the campaign's order; empty if there are none. */
  rewards: Reward[]
}

/** A page of campaigns. */
export interface ProjectListBody {
  /** The campaigns of this page. */
  data: Project[]
  pagination: Pagination
}

/** A campaign that was public and no longer is. */
export interface Removal {
  /** The id that the campaign had in lists. */
  id: string
  /**
   * When the campaign left. It is later than every `updated_at` that it had before, and earlier than the one
   * that it has if it comes back. ISO 8601 in UTC, with milliseconds and a trailing Z.
   */
  updated_at: string
}

/** A page of removals. */
export interface RemovalListBody {
  /** The removals of this page, the earliest first. */
  data: Removal[]
  pagination: Pagination
  /**
   * From this moment on, no removal is missing. If your `since` is earlier, compare your copy with all pages
   * of the list of projects once. ISO 8601 in UTC, with milliseconds and a trailing Z.
   */
  kept_since: string
}

/** A reward tier. */
export interface Reward {
  /** Unique within its campaign. */
  reward_id: string
  /** The title of the tier, as plain text. */
  title: string
  /** What a backer receives, as text. */
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
  /** The sum of all valid pledges to public campaigns, in major units of `currency`. */
  total_raised: number
  /** The number of valid pledges to public campaigns. */
  total_pledges: number
  /**
   * The number of distinct backers. A backer of several campaigns counts once. It may include a backer
   * shortly before the pledge is in total_pledges, but is never above total_pledges.
   */
  total_backers: number
  /** The number of distinct creators of public campaigns. */
  total_creators: number
  /** The number of public campaigns: the `total` of `GET /projects` without filters. */
  projects_total: number
  /** The number of campaigns with the status LIVE. */
  projects_live: number
  /** The number of campaigns with the status FUNDED. */
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
  /** Every category with public campaigns, the largest first. */
  categories: CategoryCount[]
  /** When these numbers were computed. ISO 8601 in UTC, with milliseconds and a trailing Z. */
  generated_at: string
}
