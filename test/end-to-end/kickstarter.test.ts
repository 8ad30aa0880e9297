/**
 * The main job on real input: the whole Kickstarter table as change events, with noise, through the command line into
 * a running service, and every campaign compared with the table's truth over HTTP.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import { kickstarterFolder, kickstarterTable, needs } from '../support/requirements.ts'
import {
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/service-process.ts'

interface Truth {
  campaigns: Record<string, TruthCampaign>
  hidden: string[]
  totals: {
    projects_total: number
    projects_live: number
    projects_funded: number
    total_pledges: number
    total_raised: number
    total_backers: number
    total_creators: number
    categories: Record<string, number>
  }
}

interface TruthCampaign {
  slug: string
  status: string
  category: string
  currency: string
  goal_amount: number
  pledged_amount: number
  backer_count: number
  launch_date: string
  end_date: string
  claimed: Record<string, number>
}

interface Project extends Omit<TruthCampaign, 'claimed'> {
  id: string
}

interface Reward {
  reward_id: string
  quantity_claimed: number
}

const directory = makeDataDirectory()
let service: ServiceProcess | undefined
let credentials: Record<string, string> = {}
let truth: Truth

describe('the real Kickstarter table, with five percent of noise', () => {
  beforeEach(context => needs(context, kickstarterTable))

  beforeAll(async () => {
    if (!kickstarterTable.isMet) return
    service = await startServiceProcess(['--no-demo', '--data-dir', directory.path], {
      PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
    })
    const truthFile = join(directory.path, 'truth.json')
    const generator = spawn(
      process.execPath,
      [
        new URL('kickstarter-to-events.mjs', kickstarterFolder).pathname,
        new URL('kickstarter-2018-sample.csv', kickstarterFolder).pathname,
        ...['--noise', '0.05', '--truth', truthFile],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const appended = await runCli(
      ['events', 'append', '-', '--json', '--data-dir', directory.path],
      generator.stdout,
    )
    expect(appended.code, appended.stderr).toBe(0)
    truth = JSON.parse(readFileSync(truthFile, 'utf8')) as Truth
    const issued = await runCli([
      ...['keys', 'issue', '--json', '--data-dir', directory.path],
      ...['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com'],
    ])
    const { key, secret } = JSON.parse(issued.stdout) as { key: string; secret: string }
    credentials = { 'X-API-Key': key, 'X-API-Secret': secret }
    await untilDrained(service)
  }, 240_000)

  afterAll(async () => {
    await service?.stop()
    directory.remove()
  })

  test('every public campaign is listed once, with the totals of the table, and nothing else is', async () => {
    const listed = await walk()
    expect(listed.size).toBe(Object.keys(truth.campaigns).length)
    const differing = [...listed.values()].filter(project => !isTrue(project, truth.campaigns[project.id]))
    expect(differing.slice(0, 3)).toEqual([])
    const slugs = new Set([...listed.values()].map(project => project.slug))
    expect(truth.hidden.filter(slug => slugs.has(slug))).toEqual([])
  })

  test('the tiers of every tenth campaign are answered as often claimed as in the table', async () => {
    const differing: string[] = []
    const waiting = Object.values(truth.campaigns).filter((_, index) => index % 10 === 0)
    const ask = async () => {
      for (let campaign = waiting.pop(); campaign; campaign = waiting.pop()) {
        const { slug, claimed } = campaign
        const { data } = await get<{ data: { rewards: Reward[] } }>(`/projects/${encodeURIComponent(slug)}`)
        if (!isClaimed(data.rewards, claimed)) differing.push(slug)
      }
    }
    await Promise.all(Array.from({ length: 4 }, ask))
    expect(differing).toEqual([])
  }, 240_000)

  test('no hidden campaign can be addressed', async () => {
    expect(truth.hidden.length).toBeGreaterThan(100)
    for (const slug of truth.hidden) {
      const response = await fetch(`${service?.apiUrl}/projects/${slug}`, { headers: credentials })
      expect(response.status).toBe(404)
      await response.arrayBuffer()
    }
  })

  test('the statistics are those of the table', async () => {
    const { data } = await get<{ data: Record<string, unknown> }>('/stats')
    const { categories, ...totals } = truth.totals
    expect(data).toMatchObject({ ...pick(totals), currency: 'USD' })
    const byName = (a: { category: string }, b: { category: string }) => (a.category < b.category ? -1 : 1)
    const answered = data.categories as { category: string; project_count: number }[]
    expect([...answered].sort(byName)).toEqual(
      Object.entries(categories)
        .map(([category, project_count]) => ({ category, project_count }))
        .sort(byName),
    )
  })

  test('the projector stays within its memory', () => {
    const status = readFileSync(`/proc/${service?.child.pid}/status`, 'utf8')
    const peakMb = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024
    console.log(`peak memory of the service: ${Math.round(peakMb)} MB`)
    expect(peakMb).toBeLessThan(1_500)
  })

  test("the data teams' view has every tier claimed as often as in the table, and no hidden campaign", async () => {
    await service?.stop()
    const tables = openChdbTables(join(directory.path, 'tables'))
    const rows = await tables.rows<Reward & { campaign_id: string }>({
      query: `SELECT campaign_id, reward_id, quantity_claimed FROM ${defaultDatabases.views}.rewards`,
    })
    await tables.close()
    const rewards = Map.groupBy(rows, row => row.campaign_id)
    expect(rewards.size).toBe(Object.keys(truth.campaigns).length)
    const differing = Object.entries(truth.campaigns).filter(
      ([id, { claimed }]) => !isClaimed(rewards.get(id) ?? [], claimed),
    )
    expect(differing.slice(0, 3)).toEqual([])
  })
})

function isClaimed(rewards: readonly Reward[], claimed: TruthCampaign['claimed']): boolean {
  const counts = Object.fromEntries(rewards.map(reward => [reward.reward_id, reward.quantity_claimed]))
  return isDeepStrictEqual(counts, claimed)
}

function pick({ total_raised, ...rest }: Omit<Truth['totals'], 'categories'>) {
  return {
    projects_total: rest.projects_total,
    projects_live: rest.projects_live,
    projects_funded: rest.projects_funded,
    total_pledges: rest.total_pledges,
    total_backers: rest.total_backers,
    total_creators: rest.total_creators,
    total_raised,
  }
}

function isTrue(project: Project, expected: TruthCampaign | undefined): boolean {
  if (!expected) return false
  const fields = ['slug', 'status', 'category', 'currency', 'goal_amount', 'pledged_amount'] as const
  const counts = ['backer_count', 'launch_date', 'end_date'] as const
  return [...fields, ...counts].every(field => project[field] === expected[field])
}

async function walk(): Promise<Map<string, Project>> {
  const projects = new Map<string, Project>()
  for (let offset = 0, hasMore = true; hasMore; offset += 100) {
    const page = await get<{ data: Project[]; pagination: { has_more: boolean } }>(
      `/projects?limit=100&offset=${offset}`,
    )
    for (const project of page.data) projects.set(project.id, project)
    hasMore = page.pagination.has_more
  }
  return projects
}

async function get<T>(path: string): Promise<T> {
  const response = await fetch(`${service?.apiUrl}${path}`, { headers: credentials })
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

interface Status {
  projector: { lag: { committed: number; end: number }[]; failure: string | null }
  fold: { pending_batches: number }
}

async function untilDrained({ opsUrl }: ServiceProcess): Promise<void> {
  await vi.waitFor(
    async () => {
      const status = (await (await fetch(`${opsUrl}/status`)).json()) as Status
      const waiting = status.projector.lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
      const pending = status.fold.pending_batches
      expect({ waiting, pending, failure: status.projector.failure }).toEqual({
        waiting: 0,
        pending: 0,
        failure: null,
      })
    },
    { timeout: 120_000, interval: 200 },
  )
}
