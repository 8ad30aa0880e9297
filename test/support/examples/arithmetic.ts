/** What the answers to the examples are computed with. */

/** Like ORDER BY on a column that the query rounds. */
export function round(value: number, digits: number): number {
  return Math.round(value * 10 ** digits) / 10 ** digits
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

export function mean(values: readonly number[]): number {
  return sum(values) / values.length
}

/** The value in the middle, or the mean of the two there. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}
