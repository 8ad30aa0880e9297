import { expect, test } from 'vitest'
import { createUsageCounts } from '../../../../services/query/usage/usage-counts.ts'

test('the counts of a process wait for one more minute, and then are lost, which is told', () => {
  let now = Date.parse('2026-03-01T12:00:00Z')
  const counts = createUsageCounts({ process: 'p', now: () => now })
  const waiting = () => counts.unwritten().map(({ requests, written }) => requests - written)
  const writeAll = () => {
    const rows = counts.unwritten()
    counts.confirm({ rows, requests: rows.map(({ requests }) => requests) })
  }
  counts.count('k', 200, false)
  writeAll()
  counts.count('k', 200, false)
  expect(waiting()).toEqual([1])
  now += 60_000
  counts.count('k', 304, false)
  expect(waiting()).toEqual([1, 1])
  writeAll()
  expect(waiting()).toEqual([])
  counts.count('k', 304, false)
  for (let minute = 0; minute < 2; minute++) {
    now += 60_000
    counts.count('k', 200, false)
  }
  expect(waiting()).toEqual([1, 1])
  expect(counts.lost()).toBe(1)
})
