/** What is said of repeated measurements: medians and quantiles, and ratios of what was measured in turns. Pure. */

export interface Summary {
  median: number
  min: number
  max: number
  samples: number
}

/** Throws a `RangeError` where there is no sample. */
export function summarize(samples: readonly number[]): Summary {
  return {
    median: quantile(samples, 0.5),
    min: quantile(samples, 0),
    max: quantile(samples, 1),
    samples: samples.length,
  }
}

/**
 * The sample that a share of the samples, 0 to 1, does not exceed (nearest rank); of two middle ones their mean.
 * Throws a `RangeError` where there is no sample.
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
 * How one measurement compares with another that was taken in turns with it: the ratio of their medians, between the
 * least and the greatest ratio of a pair. Throws a `RangeError` where they are not pairs.
 */
export function ratioOfPairs(values: readonly number[], ceilings: readonly number[]): Summary {
  if (values.length !== ceilings.length) throw new RangeError('the samples are not pairs')
  const ratios = values.map((value, index) => value / (ceilings[index] ?? Number.NaN))
  return { ...summarize(ratios), median: summarize(values).median / summarize(ceilings).median }
}
