/** Assertions that stay on: one that does not hold is counted by its name, and logged with its values; every other stays at 0. */
import pino from 'pino'
import { expect, test } from 'vitest'
import { projectExample } from '../../../../contracts/api/examples.ts'
import { assertAnswer } from '../../../../services/query/campaigns/assertions.ts'
import { project } from '../../../../services/query/endpoints/project.ts'
import { stats } from '../../../../services/query/endpoints/stats.ts'
import {
  brokenInvariants,
  type Invariant,
  invariant,
  logInvariants,
} from '../../../../services/runtime/ops/invariants.ts'
import { createMetrics } from '../../../../services/runtime/ops/metrics.ts'

/** The names of those that do not hold in the work. */
function brokenBy(work: () => void): Invariant[] {
  const before = new Map(brokenInvariants())
  work()
  return brokenInvariants().flatMap(([name, count]) => (count > (before.get(name) ?? 0) ? [name] : []))
}

const answered = (body: object, rest: Parameters<typeof assertAnswer>[2] = {}, parsed = body) =>
  brokenBy(() => assertAnswer(parsed, body, rest))
const page = (data: object[], more: object = {}) => ({
  data,
  pagination: { total: data.length, limit: 100, offset: 0, has_more: false, ...more },
})
const numbers = (stats.example as { data: object }).data
const detail = (project.example as { data: { rewards: object[] } }).data
const oversold = { ...detail.rewards[0], quantity_available: 2, quantity_remaining: 3 }
const removals = ['2026-01-02', '2026-01-01'].map((day, id) => ({
  id: `${id}`,
  updated_at: `${day}T00:00:00.000Z`,
}))

test('is counted in the metric and logged at most once a minute, and the work goes on', async () => {
  const lines: string[] = []
  logInvariants(pino({}, { write: line => void lines.push(line) }))
  for (let n = 0; n < 3; n++) invariant('key-hash', false, () => ({ value: n }))
  invariant('epoch-grows', true)
  expect(lines.map(line => JSON.parse(line))).toMatchObject([{ invariant: 'key-hash', value: 0, level: 50 }])
  const text = await createMetrics().registry.metrics()
  expect(text).toContain('pledgeview_invariants_broken_total{name="key-hash"} 3')
  expect(text).toContain('pledgeview_invariants_broken_total{name="epoch-grows"} 0')
})

test.each<[Invariant, () => Invariant[]]>([
  ['answer-allowlist', () => answered({ data: { a: 1, backer_id: 'b' } }, {}, { data: { a: 1 } })],
  ['answer-lifetime', () => answered({}, { createdAt: 2, expiresAt: 1 })],
  ['campaign-totals', () => answered({ data: { ...projectExample, pledged_amount: -1 } })],
  ['campaign-rewards', () => answered({ data: { ...detail, rewards: [oversold] } })],
  ['page-size', () => answered(page([projectExample], { total: 2, limit: 0, has_more: true }))],
  ['page-end', () => answered(page([projectExample], { has_more: true }))],
  ['page-twice', () => answered(page([projectExample, projectExample]))],
  ['page-digest', () => answered(page([projectExample]), { digest: '0-0000000000000000' })],
  ['removals-order', () => answered(page(removals))],
  ['stats-totals', () => answered({ data: { ...numbers, total_raised: -1 } })],
  ['stats-parts', () => answered({ data: { ...numbers, projects_live: 391 } })],
  ['stats-categories', () => answered({ data: { ...numbers, categories: [] } })],
  ['stats-people', () => answered({ data: { ...numbers, total_creators: 392 } })],
  ['stats-rate', () => answered({ data: { ...numbers, success_rate: 101 } })],
])('%s is found broken, alone', (name, broken) => {
  expect(broken()).toEqual([name])
})
