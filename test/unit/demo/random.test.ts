import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  intBetween,
  logNormal,
  pick,
  pickBy,
  pickWeighted,
  poisson,
  randomOf,
  sample,
  scramble32,
} from '../../../services/demo/random.ts'

const seeds = fc.oneof(fc.integer(), fc.string())

describe('seeded randomness', () => {
  test('the same seed gives the same numbers, on every machine and for ever', () => {
    const random = randomOf('pledgeview', 7)
    expect([random(), random(), random()]).toMatchInlineSnapshot(`
      [
        0.16490040952339768,
        0.571291537489742,
        0.4519353313371539,
      ]
    `)
  })

  test('streams of different purposes have nothing in common', () => {
    const draws = (...seed: (string | number)[]): number[] => {
      const random = randomOf(...seed)
      return Array.from({ length: 50 }, random)
    }
    const all = [draws(1, 'a'), draws(1, 'b'), draws(2, 'a'), draws('1a'), draws(1, 'a', 0)].flat()
    expect(new Set(all).size).toBe(all.length)
  })

  test('numbers fill the interval from 0 to 1 evenly, whatever the seed', () => {
    fc.assert(
      fc.property(seeds, seed => {
        const random = randomOf(seed)
        const tenths = new Array<number>(10).fill(0)
        for (let i = 0; i < 5_000; i++) {
          const tenth = Math.floor(random() * 10)
          tenths[tenth] = (tenths[tenth] ?? 0) + 1
        }
        expect(tenths).toHaveLength(10)
        for (const count of tenths) expect(Math.abs(count - 500)).toBeLessThan(150)
      }),
      { numRuns: 20 },
    )
  })

  test('integers stay within their bounds and reach both', () => {
    const random = randomOf('bounds')
    const drawn = new Set(Array.from({ length: 200 }, () => intBetween(random, -1, 2)))
    expect([...drawn].sort((a, b) => a - b)).toEqual([-1, 0, 1, 2])
  })

  test('a choice without weight is never made, and an impossible choice is an error', () => {
    const random = randomOf('weights')
    const drawn = new Set(
      Array.from({ length: 500 }, () =>
        pickWeighted(random, [
          ['a', 1],
          ['never', 0],
          ['b', 3],
        ] as const),
      ),
    )
    expect([...drawn].sort()).toEqual(['a', 'b'])
    const at = (share: number): string =>
      pickBy(
        () => share,
        ['a', 'bbb'],
        ({ length }) => length,
      )
    expect([at(0.24), at(0.26)]).toEqual(['a', 'bbb'])
    expect(() => pickWeighted(random, [['never', 0]] as const)).toThrow(RangeError)
    expect(() => pick(random, [])).toThrow(RangeError)
  })

  test('half of a log-normal distribution lies below its median, and its tail is long', () => {
    const random = randomOf('long tail')
    const values = Array.from({ length: 4_000 }, () => logNormal(random, 50, 1.3)).sort((a, b) => a - b)
    expect(values[2_000]).toBeGreaterThan(42)
    expect(values[2_000]).toBeLessThan(58)
    expect(values[3_960]).toBeGreaterThan(500)
    expect(values[0]).toBeGreaterThan(0)
  })

  test('rare things happen as often as expected on average, and sometimes not at all', () => {
    const random = randomOf('rare')
    const counts = Array.from({ length: 4_000 }, () => poisson(random, 1.2))
    expect(counts.reduce((sum, count) => sum + count, 0) / 4_000).toBeCloseTo(1.2, 0)
    expect(Math.min(...counts)).toBe(0)
    expect(poisson(random, 0)).toBe(0)
  })

  test('a sample has the asked size, keeps the order and repeats nothing', () => {
    fc.assert(
      fc.property(seeds, fc.nat(12), (seed, count) => {
        const list = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
        const drawn = sample(randomOf(seed), list, count)
        expect(drawn).toHaveLength(Math.min(count, list.length))
        expect(drawn).toEqual([...new Set(drawn)].sort())
      }),
    )
  })

  test('scrambling is one to one', () => {
    const scrambled = new Set(Array.from({ length: 100_000 }, (_, i) => scramble32(i)))
    expect(scrambled.size).toBe(100_000)
  })
})
