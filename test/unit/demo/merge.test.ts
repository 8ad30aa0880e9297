import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mergeByTime, type Timed } from '../../../services/demo/merge.ts'

describe('merging by time', () => {
  test('everything of all sources comes once, in order of time', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(50), { maxLength: 8 }), { maxLength: 12 }), lists => {
        const sorted = lists
          .map(times => times.toSorted((a, b) => a - b))
          .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
        const sources = sorted.map(times => ({
          startsAt: times[0] ?? 0,
          open: () => times.map(time => ({ time })).values(),
        }))
        const merged = [...mergeByTime(sources)].map(({ time }) => time)
        expect(merged).toEqual(lists.flat().sort((a, b) => a - b))
      }),
    )
  })

  test('a source is opened only when the merge has come to its start, so few are open at a time', () => {
    const opened: number[] = []
    const sources = [0, 10, 20].map(startsAt => ({
      startsAt,
      open: (): Iterator<Timed> => {
        opened.push(startsAt)
        return [{ time: startsAt }, { time: startsAt + 5 }].values()
      },
    }))
    const seen: string[] = []
    for (const { time } of mergeByTime(sources)) seen.push(`${time}:${opened.length}`)
    expect(opened).toEqual([0, 10, 20])
    expect(seen).toEqual(['0:1', '5:1', '10:2', '15:2', '20:3', '25:3'])
  })
})
