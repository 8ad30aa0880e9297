/** Statistics of repeated measurements: medians, quantiles, and ratios of measurements made in alternation. Pure. */

export interface Summary {
  median: number
  min: number
  max: number
  samples: number
}

/** Throws a `RangeError` if there are no samples. */
export function summarize(samples: readonly number[]): Summary {
  return {
    median: quantile(samples, 0.5),
    min: quantile(samples, 0),
    max: quantile(samples, 1),
    samples: samples.length,
  }
}

/**
 * The sample that a share of the samples (0 to 1) does not exceed, by nearest rank. For 0.5, the mean of two middle samples.
 * Throws a `RangeError` if there are no samples.
 */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const rank = share * sorted.length
  const upper = sorted[Math.min(Math.max(Math.ceil(rank) - 1, 0), sorted.length - 1)]
  if (upper === undefined) throw new RangeError('there are no samples')
  const next = sorted[rank]
  const isBetween = share === 0.5 && Number.isInteger(rank) && next !== undefined
  return isBetween ? (upper + next) / 2 : upper
}

/**
 * Compares two measurements made in alternation: the ratio of their medians, with the least and the greatest ratio of a
 * pair. Throws a `RangeError` if the samples are not pairs.
 */
export function ratioOfPairs(values: readonly number[], ceilings: readonly number[]): Summary {
  if (values.length !== ceilings.length) throw new RangeError('the samples are not pairs')
  const ratios = values.map((value, index) => value / (ceilings[index] ?? Number.NaN))
  return { ...summarize(ratios), median: summarize(values).median / summarize(ceilings).median }
}
