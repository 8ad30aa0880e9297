/**
 * Rows as the API shows them. Pure; the moment that counts as now is an argument.
 *
 * What comes out has every field of its schema and is parsed by it before it leaves (`campaign-reader.ts`).
 */
import type { Project, ProjectDetail, Stats } from '../../contracts/api/schemas.ts'
import type { ProjectDetailRow, ProjectRow, StatsRow } from './rows.ts'

const dayMs = 24 * 60 * 60 * 1000

/** A campaign as lists show it. `now` is in Unix milliseconds. */
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
    creator: {
      name: row.creator_name,
      profile_url: row.creator_profile_url,
      avatar_url: row.creator_avatar_url,
    },
  }
}

/** A campaign as its own page shows it. */
export function presentProjectDetail(row: ProjectDetailRow, now: number): ProjectDetail {
  return {
    ...presentProject(row, now),
    description: row.description,
    risks: row.risks,
    rewards: row.rewards,
  }
}

/** The platform in numbers. `currency` is the platform's. Ratios are 0 where there is nothing to divide by. */
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
    success_rate: ended === 0 ? 0 : (100 * row.projects_funded) / ended,
    average_pledge: row.total_pledges === 0 ? 0 : row.total_raised / row.total_pledges,
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

/** Whole days until the end, rounded up; 0 when it is over or there is none. */
export function daysRemaining(endDate: string | null, now: number): number {
  return endDate === null ? 0 : Math.max(0, Math.ceil((Date.parse(endDate) - now) / dayMs))
}

function presentOptionalTimestamp(text: string | null): string | null {
  return text === null ? null : presentTimestamp(text)
}
