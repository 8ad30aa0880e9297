/** Compares the answers of a Kickstarter read model, over HTTP and through the views, with the truth. */

import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import type { Truth, TruthCampaign } from './kickstarter.ts'

/** One query process, and the credentials to call it with. */
interface Asked {
  /** `http://127.0.0.1:port/api/v1` */
  apiUrl: string
  credentials: Record<string, string>
  truth: Truth
}

interface Project extends Omit<TruthCampaign, 'claimed'> {
  id: string
}

interface Reward {
  reward_id: string
  quantity_claimed: number
}

// Which campaigns are requested one by one, by their number, because each takes milliseconds.
const isSampled = (index: number) => index % 40 === 0
// So many must be sampled, so that the test proves something.
const sampledMin = 201

/** Tests all answers of the API about the table. `asked` is called inside tests. */
export function describeAnswers(asked: () => Asked): void {
  describe('the query process', () => {
    test('lists every public campaign once, with the totals of the table, and no other campaigns', async () => {
      const { truth } = asked()
      const listed = await walk(asked())
      expect(new Set(listed.map(({ id }) => id)).size).toBe(listed.length)
      expect(listed).toHaveLength(Object.keys(truth.campaigns).length)
      const differing = listed.filter(project => !isTrue(project, truth.campaigns[project.id]))
      expect(differing.slice(0, 3)).toEqual([])
    })

    test('says how often each tier of a sample was claimed', async () => {
      const { truth } = asked()
      const waiting = Object.values(truth.campaigns).filter((_, index) => isSampled(index))
      expect(waiting.length).toBeGreaterThanOrEqual(sampledMin)
      const differing: string[] = []
      const ask = async () => {
        for (let campaign = waiting.pop(); campaign; campaign = waiting.pop()) {
          const { slug, claimed } = campaign
          const path = `/projects/${encodeURIComponent(slug)}`
          const { data } = await get<{ data: { rewards: Reward[] } }>(asked(), path)
          if (!isClaimed(data.rewards, claimed)) differing.push(slug)
        }
      }
      await Promise.all(Array.from({ length: 4 }, ask))
      expect(differing).toEqual([])
    }, 240_000)

    test('has the statistics of the table', async () => {
      const { data } = await get<{ data: Record<string, unknown> }>(asked(), '/stats')
      const { categories, total_raised_minor: _, ...totals } = asked().truth.totals
      expect(data).toMatchObject({ ...totals, currency: 'USD' })
      const answered = data.categories as { category: string; project_count: number }[]
      expect(Object.fromEntries(answered.map(row => [row.category, row.project_count]))).toEqual(categories)
    })
  })
}

/** Compares every row of the data teams' views with the truth. */
export async function expectTrueViews(tables: Pick<Tables, 'rows'>, truth: Truth): Promise<void> {
  const { views } = defaultDatabases
  const iso = (column: string) => `concat(replaceOne(toString(c.${column}), ' ', 'T'), 'Z') AS ${column}`
  const campaigns = await tables.rows<Project>({
    query: `SELECT campaign_id AS id, slug, status, category, currency, goal_amount, pledged_amount, backer_count,
        ${iso('launch_date')}, ${iso('end_date')}
      FROM ${views}.campaigns AS c`,
  })
  expect(campaigns).toHaveLength(Object.keys(truth.campaigns).length)
  expect(campaigns.filter(row => !isTrue(row, truth.campaigns[row.id])).slice(0, 3)).toEqual([])

  const rewards = Map.groupBy(
    await tables.rows<Reward & { campaign_id: string }>({
      query: `SELECT campaign_id, reward_id, quantity_claimed FROM ${views}.rewards`,
    }),
    row => row.campaign_id,
  )
  expect(rewards.size).toBe(Object.keys(truth.campaigns).length)
  const differing = Object.entries(truth.campaigns).filter(
    ([id, { claimed }]) => !isClaimed(rewards.get(id) ?? [], claimed),
  )
  expect(differing.slice(0, 3)).toEqual([])

  const { categories, total_raised_minor: _, ...totals } = truth.totals
  const counted = await tables.rows<{ category: string; project_count: number }>({
    query: `SELECT category, project_count FROM ${views}.categories`,
  })
  expect(Object.fromEntries(counted.map(row => [row.category, row.project_count]))).toEqual(categories)
  const [platform] = await tables.rows<object>({ query: `SELECT * FROM ${views}.platform_totals` })
  expect(platform).toMatchObject(totals)
}

function isClaimed(rewards: readonly Reward[], claimed: TruthCampaign['claimed']): boolean {
  const counts = Object.fromEntries(rewards.map(reward => [reward.reward_id, reward.quantity_claimed]))
  return isDeepStrictEqual(counts, claimed)
}

function isTrue(project: Project, expected: TruthCampaign | undefined): boolean {
  if (!expected) return false
  const fields = ['slug', 'status', 'category', 'currency', 'goal_amount', 'pledged_amount'] as const
  const counts = ['backer_count', 'launch_date', 'end_date'] as const
  return [...fields, ...counts].every(field => project[field] === expected[field])
}

async function walk(asked: Asked): Promise<Project[]> {
  const projects: Project[] = []
  for (let offset = 0, hasMore = true; hasMore; offset += 100) {
    const page = await get<{ data: Project[]; pagination: { has_more: boolean } }>(
      asked,
      `/projects?limit=100&offset=${offset}`,
    )
    projects.push(...page.data)
    hasMore = page.pagination.has_more
  }
  return projects
}

async function get<T>({ apiUrl, credentials }: Asked, path: string): Promise<T> {
  const response = await fetch(`${apiUrl}${path}`, { headers: credentials })
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}
