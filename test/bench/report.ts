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
  /** Something that was asked got no answer; the notes say what. The run ends with 1. */
  isIncomplete?: boolean
  /** Shown instead of the figures: a header and rows. */
  table?: readonly (readonly string[])[]
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

export function isMet({ value, target }: Figure): boolean | undefined {
  if (!target) return undefined
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}

/** The report with `met` beside every target, for `--json`. */
export function reportObject({ table: _, ...report }: BenchReport): object {
  return {
    ...report,
    figures: report.figures.map(figure => {
      const met = isMet(figure)
      return met === undefined ? figure : { ...figure, met }
    }),
  }
}

/** The report as lines: name, value, spread, target, verdict; or its table. */
export function reportText({ bench, notes, figures, table }: BenchReport): string {
  const rows =
    table ?? figures.map(figure => [figure.name, figureText(figure), spreadText(figure), targetText(figure)])
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
  const { target } = figure
  if (!target) return ''
  const bound = 'atLeast' in target ? `>= ${numberText(target.atLeast)}` : `<= ${numberText(target.atMost)}`
  return `${isMet(figure) ? 'met' : 'missed'} (target ${bound})`
}

/** Three significant digits: 0.612, 9.41, 25, 131,400. */
function numberText(value: number): string {
  if (value >= 100 || value === 0 || Number.isInteger(value)) return grouped(Math.round(value))
  return value.toFixed(value >= 10 ? 1 : value >= 1 ? 2 : 3)
}
