/** The statistics of a large platform are computed before the app listens, and again before they end. */
import { expect, it } from 'vitest'
import { aheadPledgesMin, type StatsRow } from '../../../../services/query/endpoints/stats.ts'
import type { Statement } from '../../../../services/tables/port.ts'
import { startTestApp } from '../../../support/query/app.ts'

const row: StatsRow = {
  total_raised: 1,
  total_pledges: aheadPledgesMin,
  total_backers: 1,
  total_creators: 1,
  projects_total: 1,
  projects_live: 1,
  projects_funded: 0,
  projects_failed: 0,
  projects_cancelled: 0,
  categories: ['Games'],
  category_projects: [1],
  generated_at: '2026-03-01 12:00:00.000',
}

it('answers the first request for them without a statement', async () => {
  let statements = 0
  const tables = {
    rows: async <Row>({ query }: Statement) => {
      if (query.includes('platform_totals')) statements++
      return [row] as Row[]
    },
  }
  const app = await startTestApp({ tables, overrides: { keepsAhead: true } })
  const key = app.issue()
  expect(statements).toBe(1)
  const response = await app.get('/stats', key)
  expect(response.status).toBe(200)
  expect(response.headers.get('cache-control')).toBe('private, max-age=300')
  expect(statements).toBe(1)
  await app.close()
})
