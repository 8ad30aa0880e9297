/** What `pledgeview purge` prints. Pure. */
import type { PurgedCopy, PurgeReport } from '../../erasure/report.ts'

const notReached =
  'Not everything could be reached. Do what the column "left" says, and run the same command again.\n'

/** A table with one line for each copy. Long cells stay on their line, so that the text can be searched. */
export function reportText({ isDry, copies }: PurgeReport): string {
  const rows = [
    ['copy', isDry ? 'it would' : 'done', 'left', 'until'],
    ...copies.map(({ copy, done, left, until }) => [copy, done, left ?? 'nothing', until ?? '-']),
  ]
  const widths = [0, 1, 2].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  const lines = rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n${copies.every(({ isReached }) => isReached) ? '' : notReached}`
}

export function reportJson({ isDry, startedAt, copies }: PurgeReport): object {
  return {
    is_dry_run: isDry,
    started_at: startedAt,
    is_complete: copies.every(({ isReached }) => isReached),
    copies: copies.map(copyJson),
  }
}

function copyJson({ copy, done, left, until, isReached }: PurgedCopy): object {
  return { copy, done, left, until, is_reached: isReached }
}
