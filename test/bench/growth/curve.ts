/**
 * How a cost grows with a size: measured at some multiples of a base, and beyond the last one derived from the slope. Pure.
 *
 * The slope is that of the last two measured points in a log-log plot: 0 does not grow, 1 grows as the size does, 2 as its square.
 * Earlier points have too much of what is constant.
 */
import type { Figure } from '../report.ts'

/** A measured cost at so many times the base. */
export interface Point {
  times: number
  value: number
}

export interface Curve {
  /** The cost, for example `detail, p50`. */
  cost: string
  /** What grows, for example `campaigns`. */
  of: string
  unit: string
  /** In the order of their multiples, at least one. */
  points: readonly Point[]
}

/** The multiples of a line. Those that were not measured are derived. */
const multiples = [1, 10, 100, 1_000] as const

/** Undefined if fewer than two points were measured, or a cost is zero. */
function slopeOf(points: readonly Point[]): number | undefined {
  const [before, last] = points.slice(-2)
  if (!before || !last || before.value <= 0 || last.value <= 0) return undefined
  return Math.log(last.value / before.value) / Math.log(last.times / before.times)
}

/** The cost at a multiple beyond the last measured one. A cost that seemed to fall is taken as constant. */
function derivedAt(points: readonly Point[], times: number): number | undefined {
  const last = points.at(-1)
  const slope = slopeOf(points)
  if (!last || slope === undefined) return undefined
  return last.value * (times / last.times) ** Math.max(0, slope)
}

/** One for each multiple, and the slope. Their names say which ones are derived. */
export function growthFigures(curves: readonly Curve[]): Figure[] {
  return curves.flatMap(({ cost, of, unit, points }) => {
    const slope = slopeOf(points)
    const figures = multiples.flatMap((times): Figure[] => {
      const measured = points.find(point => point.times === times)
      const value = measured?.value ?? derivedAt(points, times)
      const name = `${cost}, ${times}x ${of}${measured ? '' : ', derived'}`
      return value === undefined ? [] : [{ name, value, unit }]
    })
    return slope === undefined
      ? figures
      : [...figures, { name: `${cost}, slope by ${of}`, value: slope, unit: '' }]
  })
}
