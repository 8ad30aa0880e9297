/** The gauges that have to be asked for: those of the log, and those that the leader reads once a minute. */
import { expect, test } from 'vitest'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { idleGauges } from '../../support/projector/gauges.ts'

test('shared slugs are read once a minute, also after the clock of the machine has stepped back, and at once by a process that leads again', async () => {
  let [now, monotonicMs] = [Date.UTC(2026, 0, 1), 0]
  let isLeading = true
  let readings = 0
  const scrape = idleGauges({
    metrics: createMetrics(),
    now: () => now,
    monotonicMs: () => monotonicMs,
    isLeading: () => isLeading,
    sharedSlugCount: async () => ++readings,
  })
  const readAt = async (at: number) => {
    monotonicMs = at
    await scrape()
    return readings
  }
  expect(await readAt(0)).toBe(1)
  expect(await readAt(59_000)).toBe(1)
  now -= 3_600_000
  expect(await readAt(60_000)).toBe(2)
  expect(await readAt(61_000)).toBe(2)
  isLeading = false
  expect(await readAt(62_000)).toBe(2)
  isLeading = true
  expect(await readAt(63_000)).toBe(3)
})

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
