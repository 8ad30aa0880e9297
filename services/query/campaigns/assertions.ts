/** What holds for each campaign, page and statistic when an answer is made, before a cache has it (runtime/ops/invariants.ts). */
import type { Reward } from '../../../contracts/api/schemas.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import type { Pagination } from '../endpoints/page.ts'

type Fields = Readonly<Record<string, unknown>>

interface Body {
  data?: Fields | readonly Fields[]
  pagination?: Pagination
}

type Made = Partial<CacheEntry>

/** `parsed`: what its schema has left of the body. */
export function assertAnswer(parsed: object, body: object, made: Made): void {
  const { data = [], pagination } = parsed as Body
  const rows = [data].flat()
  const raw = [(body as Body).data ?? []].flat()
  for (const [n, row] of rows.entries()) assertRow(row, raw[n] ?? {})
  assertLifetime(made)
  if (pagination) assertPage(rows as { id: string }[], pagination, made)
  const stamps = rows.map(row => String(row.updated_at))
  const isRemovals = pagination !== undefined && rows.some(row => !('title' in row))
  const isSorted = stamps.every((stamp, n) => stamp >= (stamps[n - 1] ?? ''))
  invariant('removals-order', !isRemovals || isSorted, () => ({ ...pagination, rows: rows.length }))
}

/** `row`: what its schema has left of it. */
export function assertRow(row: Fields, raw: Fields): void {
  const fields = Object.keys(raw)
  invariant('answer-allowlist', Object.keys(row).length === fields.length, () => ({ raw: fields }))
  if ('pledged_amount' in row) assertCampaign(row)
  else if ('projects_total' in row) assertStats(row as Parameters<typeof assertStats>[0])
}

export function assertLifetime({ createdAt = 0, expiresAt = 0 }: Made): void {
  invariant('answer-lifetime', createdAt <= expiresAt, () => ({ createdAt, expiresAt }))
}

export function assertPage(rows: readonly { id: string }[], page: Pagination, { digest }: Made): void {
  const { total, limit, offset, has_more } = page
  const detail = () => ({ ...page, rows: rows.length, digest })
  invariant('page-size', rows.length <= Math.min(limit, Math.max(0, total - offset)), detail)
  invariant('page-end', has_more === offset + limit < total, detail)
  invariant('page-twice', new Set(rows.map(({ id }) => id)).size === rows.length, detail)
  invariant('page-digest', digest === undefined || Number.parseInt(digest, 10) >= total, detail)
}

function assertCampaign(row: Fields): void {
  const numbers = Object.entries(row).filter(([, value]) => typeof value === 'number')
  invariant('campaign-totals', numbers.every(isNotNegative), () => ({ id: row.id, numbers }))
  const rewards = (row.rewards ?? []) as Reward[]
  const isWithin = rewards.every(
    ({ quantity_available: all, quantity_remaining: left }) =>
      (all === null) === (left === null) && (left ?? 0) >= 0 && (left ?? 0) <= (all ?? 0),
  )
  invariant('campaign-rewards', isWithin, () => ({ id: row.id, rewards }))
}

function assertStats(stats: Readonly<Record<string, number>> & { categories: readonly Fields[] }): void {
  const { projects_total = 0, projects_live = 0, projects_funded = 0, success_rate = 0 } = stats
  const { total_pledges = 0, total_backers = 0, total_creators = 0, categories } = stats
  const detail = () => ({ ...stats, categories: categories.length })
  const numbers = Object.entries(stats).filter(([, value]) => typeof value === 'number')
  const inCategories = categories.reduce((sum, { project_count }) => sum + Number(project_count), 0)
  invariant('stats-totals', numbers.every(isNotNegative), detail)
  invariant('stats-parts', projects_live + projects_funded <= projects_total, detail)
  invariant('stats-categories', inCategories === projects_total, detail)
  invariant('stats-people', total_backers <= total_pledges && total_creators <= projects_total, detail)
  invariant('stats-rate', success_rate <= 100, detail)
}

function isNotNegative([, value]: [string, unknown]): boolean {
  return Number(value) >= 0
}
