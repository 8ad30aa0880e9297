import { describe, expect, test } from 'vitest'
import { quantile, ratioOfPairs, summarize } from './samples.ts'

describe('samples', () => {
  test('the median is the middle sample, or the mean of the two middle ones', () => {
    expect(summarize([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, samples: 3 })
    expect(summarize([4, 1, 2, 3]).median).toBe(2.5)
    expect(summarize([7])).toEqual({ median: 7, min: 7, max: 7, samples: 1 })
  })

  test('a quantile is one of the samples (nearest rank)', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
    expect(quantile(hundred, 0.99)).toBe(99)
    expect(quantile(hundred, 1)).toBe(100)
    expect(quantile([5, 6], 0.99)).toBe(6)
  })

  test('a ratio is that of the medians, with the least and the greatest of the pairs', () => {
    expect(ratioOfPairs([50, 60, 90], [100, 100, 100])).toEqual({
      median: 0.6,
      min: 0.5,
      max: 0.9,
      samples: 3,
    })
  })

  test('no samples, and samples that are not pairs, are refused', () => {
    expect(() => summarize([])).toThrow(RangeError)
    expect(() => ratioOfPairs([1, 2], [1])).toThrow(RangeError)
  })
})
