/**
 * Converts rows to the API's fields. Pure; the present time is an argument.
 *
 * The result has every field of its schema, and the schema parses it before it leaves (`campaigns/campaign-reader.ts`).
 */
import type { Project, ProjectDetail, Stats } from '../../../contracts/api/schemas.ts'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { roundedQuotient } from './quotient.ts'
import type { ProjectDetailRow, ProjectRow, StatsRow } from './rows.ts'

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

/**
 * The statistics of the platform. `currency` is the platform's currency. A ratio is 0 if its divisor is 0. The average
 * has the digits of the currency, and the rate has two.
 */
export function presentStats(row: StatsRow, currency: string): Stats {
  const ended = row.projects_funded + row.projects_failed + row.projects_cancelled
  return {
    currency,
    total_raised: row.total_raised,
    total_pledges: row.total_pledges,
    total_backers: row.total_backers,
    total_creators: row.total_creators,
    projects_total: row.projects_total,
    projects_live: row.projects_live,
    projects_funded: row.projects_funded,
    success_rate: roundedQuotient(100 * row.projects_funded, ended, 2),
    average_pledge: roundedQuotient(row.total_raised, row.total_pledges, currencyDigits(currency) ?? 2),
    categories: row.categories.map((category, index) => ({
      category,
      project_count: row.category_projects[index] ?? 0,
    })),
    generated_at: presentTimestamp(row.generated_at),
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
