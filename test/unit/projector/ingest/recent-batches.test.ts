import { describe, expect, test } from 'vitest'
import {
  firstTimes,
  type LoggedBatch,
  readRecentBatches,
} from '../../../../services/projector/ingest/recent-batches.ts'
import { createRejectCircuitBreaker } from '../../../../services/projector/ingest/reject-circuit-breaker.ts'
import { generationOf } from '../../../../services/tables/generations.ts'

const batch = (projector: string, next: number, rejects = 1) => ({
  projector,
  records: 10,
  rejects,
  next: { 'pledges/0': next },
})

describe('what the circuit breaker remembers of earlier runs', () => {
  test('a batch that was written again after a kill counts once', () => {
    const again = { ...batch('b', 20), next: { 'pledges/0': 20, 'campaigns/0': 5 } }
    const batches = [batch('a', 10), batch('a', 20), batch('b', 20), again, batch('b', 30)]
    expect(firstTimes(batches)).toEqual([batches[0], batches[1], again, batches[4]])
  })

  const asked = { partitions: ['pledges/0'], windowRecords: 100 }
  const databases = generationOf({ base: 'm', views: 'v' }, 1)
  const tablesWith = (newestFirst: LoggedBatch[], shares: Record<string, number>) => ({
    rows: async <Row>({ query }: { query: string }) =>
      (query.includes('projector_log')
        ? Object.entries(shares).map(([projector, share]) => ({ projector, share }))
        : newestFirst) as Row[],
  })

  test('batches of an earlier version, which did not note the share that it allowed, do not count', async () => {
    const newestFirst = [batch('now', 40, 3), batch('earlier', 30, 10)]
    const tables = tablesWith(newestFirst, { now: 0.1 })
    expect(await readRecentBatches(tables, databases, { ...asked, shareMax: 0.1 })).toEqual([newestFirst[0]])
  })

  test('batches that a higher share let pass do not count, nor those before them', async () => {
    const newestFirst = [batch('now', 40, 3), batch('allowed', 30, 10), batch('before', 20, 10)]
    const tables = tablesWith(newestFirst, { now: 0.1, allowed: 1, before: 0.1 })
    expect(await readRecentBatches(tables, databases, { ...asked, shareMax: 0.1 })).toEqual([newestFirst[0]])
    expect(await readRecentBatches(tables, databases, { ...asked, shareMax: 1 })).toHaveLength(3)
  })

  test('they fill the window of the next run, from the newest back', () => {
    const settings = { shareMax: 0.1, windowRecords: 100, rejectsMin: 10 }
    const breaker = createRejectCircuitBreaker(settings, [
      { records: 100, rejects: 100 },
      { records: 90, rejects: 9 },
    ])
    expect(breaker.admit({ records: 10, rejects: 0 })).toBe(true)
    expect(breaker.window()).toEqual({ records: 100, rejects: 9 })
    expect(breaker.admit({ records: 10, rejects: 9 })).toBe(false)
    expect(breaker.window()).toEqual({ records: 110, rejects: 18 })
  })
})
