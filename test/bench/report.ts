/** A bench's report: figures beside their targets, as text and as JSON. Pure. */
import { grouped } from '../../services/runtime/progress.ts'
import type { Summary } from './samples.ts'

/** The target of a figure. A target is a promise of the design, not a test: the report only says if it was missed. */
export type Target = { atLeast: number } | { atMost: number }

export interface Figure {
  name: string
  /** The figure itself: a median, unless its name says otherwise. */
  value: number
  unit: string
  /** The least and the greatest sample, and the number of samples. */
  spread?: Omit<Summary, 'median'>
  target?: Target
}

export interface BenchReport {
  bench: string
  /** What was measured, in a sentence or two. */
  notes: string[]
  figures: Figure[]
}

/** A figure from samples: their median, with the spread. */
export function figureOf(
  name: string,
  unit: string,
  { median, ...spread }: Summary,
  target?: Target,
): Figure {
  return { name, value: median, unit, spread, ...(target && { target }) }
}

/** The report as lines: name, value, spread, target, verdict. */
export function reportText({ bench, notes, figures }: BenchReport): string {
  const rows = figures.map(figure => [
    figure.name,
    figureText(figure),
    spreadText(figure),
    targetText(figure),
  ])
  return [bench, ...notes.map(note => `  ${note}`), '', columnsText(rows), ''].join('\n')
}

/** Rows as lines with aligned columns. */
export function columnsText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const lines = rows.map(row =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  )
  return lines.join('\n')
}

/** The value with its unit. */
export function figureText({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  return `${numberText(value)} ${unit}`.trimEnd()
}

function spreadText({ spread }: Figure): string {
  return spread ? `${numberText(spread.min)} .. ${numberText(spread.max)} (${spread.samples})` : ''
}

/** Whether the target is met, and the target; empty if there is none. */
export function targetText(figure: Figure): string {
  const { value, target } = figure
  if (!target) return ''
  return 'atLeast' in target
    ? `${value >= target.atLeast ? 'met' : 'missed'} (target >= ${numberText(target.atLeast)})`
    : `${value <= target.atMost ? 'met' : 'missed'} (target <= ${numberText(target.atMost)})`
}

/** Three significant digits: 0.612, 9.41, 25, 131,400. */
function numberText(value: number): string {
  if (value >= 100 || value === 0 || Number.isInteger(value)) return grouped(Math.round(value))
  return value.toFixed(value >= 10 ? 1 : value >= 1 ? 2 : 3)
}
