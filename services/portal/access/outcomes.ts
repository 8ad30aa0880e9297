/** The outcomes that usage is shown by: their order in graphs and tables, and their names. */
import type { KeyUsage, UsageCounts } from '../ports.ts'

/** What a request ended in. Each request has exactly one of these; `deprecated` counts across them. */
export type Outcome = Exclude<keyof UsageCounts, 'deprecated'>

/** In the order of the graph, from the bottom. */
export const outcomes: readonly { outcome: Outcome; name: string; meaning: string }[] = [
  { outcome: 'ok', name: '200', meaning: 'answered' },
  { outcome: 'not_modified', name: '304', meaning: 'not modified' },
  { outcome: 'unauthorized', name: '401', meaning: 'wrong secret, or the key has ended' },
  { outcome: 'too_many', name: '429', meaning: 'over the limit' },
  { outcome: 'other', name: 'Other', meaning: 'other answers, such as 400 and 404' },
]

/** All requests of these counts, whatever they ended in. */
export function requestsOf(counts: UsageCounts): number {
  return outcomes.reduce((sum, { outcome }) => sum + counts[outcome], 0)
}

/** The counts of all days together. */
export function totalOf(days: Readonly<KeyUsage['days']>): UsageCounts {
  const total: UsageCounts = { ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 }
  for (const day of days) {
    for (const { outcome } of outcomes) total[outcome] += day[outcome]
    total.deprecated += day.deprecated
  }
  return total
}

/** The class of the stylesheet that gives the outcome its colour. */
export function classOf(outcome: Outcome): string {
  return outcome.replaceAll('_', '-')
}
