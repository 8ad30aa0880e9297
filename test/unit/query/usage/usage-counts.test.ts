import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createUsageCounts, type UsageCounts } from '../../../../services/query/usage/usage-counts.ts'

const start = Date.parse('2026-03-01T12:00:00Z')

function countsAt(time: { now: number }, rowsMax = 1_000): UsageCounts {
  return createUsageCounts({ process: 'p', rowsMax, now: () => time.now })
}

describe('the counts of a process', () => {
  test('have one class for each outcome, and all requests in one of them', () => {
    const counts = countsAt({ now: start })
    for (const status of [200, 304, 304, 401, 429, 400, 404, 500, 499]) counts.count('k', status, false)
    counts.count('k', 200, true)
    expect(counts.unwritten()).toEqual([
      expect.objectContaining({
        key: 'k',
        minute: start / 60_000,
        ok: 2,
        not_modified: 2,
        unauthorized: 1,
        too_many: 1,
        other: 4,
        deprecated: 1,
        requests: 10,
      }),
    ])
  })

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

  test('give no two rows one name, however the clock steps', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 60 }), steps => {
        const time = { now: start }
        const counts = countsAt(time)
        const names: string[] = []
        for (const step of steps) {
          time.now += step * 60_000
          counts.count('k', 200, false)
          names.push(...counts.unwritten().map(row => `${row.process} ${row.minute}`))
          counts.confirm(counts.send(counts.unwritten()))
        }
        // Each request was written before the next one, so a name that comes again is the same row, one later.
        const rows = names.filter((name, index) => name !== names[index - 1])
        expect(new Set(rows).size).toBe(rows.length)
      }),
    )
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
