/** The gauges that have to be asked for: those of the log, and those that the leader reads once a minute. */
import { expect, test } from 'vitest'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { idleGauges } from '../../support/projector/gauges.ts'

test('what only a projector can know, no other process reports as 0', async () => {
  const metrics = createMetrics()
  const names = /^pledgeview_(shared_slugs|unknown_campaign_pledges|oversold_claims) /gm
  expect(await metrics.registry.metrics()).not.toMatch(names)
  idleGauges({ metrics })
  expect((await metrics.registry.metrics()).match(names)).toHaveLength(3)
})

test('a ClickHouse that answers is up, although the readings take longer than a scrape waits, and without one shard it is not', async () => {
  const metrics = createMetrics()
  await idleGauges({ metrics, rejectCounts: () => new Promise(() => {}) })()
  expect((await metrics.clickhouseUp.get()).values).toMatchObject([{ value: 1 }])
  const [up, away] = [async () => [], () => Promise.reject(new Error('away'))]
  await idleGauges({ metrics, servers: [{ rows: up }, { rows: away }] })()
  expect((await metrics.clickhouseUp.get()).values).toMatchObject([{ value: 0 }])
})

test('a log that ends before the position has no negative lag', async () => {
  const metrics = createMetrics()
  const partition = { topic: 'pledges', partition: 0, committed: 9, end: 4 } as const
  await idleGauges({ metrics, lag: async () => [partition] })()
  expect((await metrics.lag.get()).values).toMatchObject([{ value: 0 }])
})
