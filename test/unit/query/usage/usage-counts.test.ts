import { describe, expect, test } from 'vitest'
import { createUsageCounts, type UsageCounts } from '../../../../services/query/usage/usage-counts.ts'

const start = Date.parse('2026-03-01T12:00:00Z')

function countsAt(time: { now: number }, rowsMax = 1_000): UsageCounts {
  return createUsageCounts({ process: 'p', rowsMax, now: () => time.now })
}

describe('the counts of a process', () => {
  test('forget a minute when it is over and written, and not before', () => {
    const time = { now: start }
    const counts = countsAt(time)
    counts.count('k', 200, false)
    const first = counts.send(counts.unwritten())
    counts.count('k', 200, false)
    counts.confirm(first)
    expect(counts.unwritten()).toMatchObject([{ requests: 2 }])
    time.now += 60_000
    counts.count('k', 200, false)
    expect(counts.size()).toBe(2)
    counts.confirm(counts.send(counts.unwritten()))
    expect([counts.size(), counts.unwritten()]).toEqual([1, []])
  })

  test('stay within their memory: first they are summed by key and day, then requests are lost, which is told', () => {
    const time = { now: start }
    const counts = countsAt(time, 10)
    for (let minute = 0; minute < 6; minute++) {
      for (const key of ['a', 'b']) counts.count(key, minute % 2 ? 200 : 304, false)
      time.now += 60_000
    }
    // Some row was sent, and perhaps it arrived: its requests must stay where they are.
    counts.send(counts.unwritten().slice(0, 1))
    counts.count('c', 200, false)
    expect(counts.size()).toBe(10)
    expect(counts.lost()).toBe(3)
    expect(counts.sum()).toBe(7)
    const sums = Map.groupBy(counts.unwritten(), row => row.key)
    const total = (key: string) => sums.get(key)?.reduce((sum, row) => sum + row.requests, 0)
    expect([total('a'), total('b')]).toEqual([5, 5])
    expect(sums.get('a')?.map(row => row.requests)).toEqual([1, 4])
    expect(sums.get('b')?.at(-1)?.minute).toBe(start / 60_000 + 4)
    counts.count('c', 200, false)
    expect(counts.lost()).toBe(3)
  })

  test('keep two days apart when they sum minutes', () => {
    const time = { now: Date.parse('2026-03-01T23:58:00Z') }
    const counts = countsAt(time, 6)
    for (let minute = 0; minute < 4; minute++) {
      counts.count('k', 200, false)
      time.now += 60_000
    }
    counts.count('k', 200, false)
    expect(counts.sum()).toBe(2)
    const days = counts.unwritten().map(row => [new Date(row.minute * 60_000).toISOString(), row.requests])
    expect(days).toEqual([
      ['2026-03-01T23:59:00.000Z', 2],
      ['2026-03-02T00:01:00.000Z', 2],
      ['2026-03-02T00:02:00.000Z', 1],
    ])
  })
})
