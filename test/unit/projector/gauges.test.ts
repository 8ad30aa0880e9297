/** The gauges that the leader reads once a minute. */
import { expect, test } from 'vitest'
import { createProjectorGauges } from '../../../services/projector/gauges.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'

test('shared slugs are read once a minute, also after the clock of the machine has stepped back', async () => {
  let [now, monotonicMs] = [Date.UTC(2026, 0, 1), 0]
  let readings = 0
  const metrics = createMetrics()
  const scrape = createProjectorGauges({
    ...{ metrics, now: () => now, monotonicMs: () => monotonicMs },
    isRunning: () => true,
    isLeading: () => true,
    lastFold: () => undefined,
    oldestUncommitted: () => [],
    unfolded: { read: async () => {}, waitsSince: () => undefined },
    lag: async () => [],
    rejectCounts: async () => ({ total: 0, open: 0 }),
    sharedSlugCount: async () => ++readings,
    claims: async () => ({
      unknown: { campaigns: 0, pledges: 0, examples: [] },
      oversold: { tiers: 0, claims: 0, examples: [] },
    }),
    reportProjection: async () => {},
    rebuild: async () => undefined,
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
})
