import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Curve, derivedAt, growthFigures, growthTable, slopeOf } from './growth-curve.ts'
import { reportText } from './report.ts'

const measured: Curve = {
  cost: 'fold of everything',
  of: 'campaigns',
  unit: 's',
  points: [
    { times: 1, value: 2 },
    { times: 10, value: 4 },
    { times: 100, value: 40 },
  ],
}

describe('the growth of a cost', () => {
  test('the slope of a power of the size is its exponent, and what is derived is on the same curve', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 3, noNaN: true }),
        fc.double({ min: 0.001, max: 1_000, noNaN: true }),
        (exponent, base) => {
          const points = [1, 10].map(times => ({ times, value: base * times ** exponent }))
          expect(slopeOf(points)).toBeCloseTo(exponent, 6)
          expect((derivedAt(points, 1_000) ?? 0) / (base * 1_000 ** exponent)).toBeCloseTo(1, 6)
        },
      ),
    )
  })

  test('the last two points count, and a cost that seemed to fall is derived as constant', () => {
    expect(slopeOf(measured.points)).toBeCloseTo(1)
    const falling = [
      { times: 1, value: 5 },
      { times: 10, value: 4 },
    ]
    expect(slopeOf(falling)).toBeLessThan(0)
    expect(derivedAt(falling, 100)).toBe(4)
  })

  test('one point, or a cost of zero, has no slope and derives nothing', () => {
    expect(slopeOf([{ times: 1, value: 3 }])).toBeUndefined()
    expect(
      derivedAt(
        [
          { times: 1, value: 0 },
          { times: 10, value: 3 },
        ],
        100,
      ),
    ).toBeUndefined()
  })

  test('a cost is one line, and what was not measured is marked as derived', () => {
    expect(growthTable([measured])[1]).toEqual([
      'fold of everything',
      'campaigns',
      '2 s',
      '4 s',
      '40 s',
      '~400 s (derived)',
      '1.00',
    ])
    expect(growthFigures([measured]).map(({ name, value }) => [name, Math.round(value)])).toEqual([
      ['fold of everything, 1x campaigns', 2],
      ['fold of everything, 10x campaigns', 4],
      ['fold of everything, 100x campaigns', 40],
      ['fold of everything, 1000x campaigns, derived', 400],
      ['fold of everything, slope by campaigns', 1],
    ])
  })

  test('a report with a table shows its lines instead of the figures', () => {
    const figures = growthFigures([measured])
    const text = reportText({ bench: 'growth', notes: ['A note.'], figures, table: growthTable([measured]) })
    expect(text).toContain('~400 s (derived)')
    expect(text).not.toContain('slope by campaigns')
  })
})
