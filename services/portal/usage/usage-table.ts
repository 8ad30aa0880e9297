/** The requests of a key as a table, and the legend of the graph. */
import { type Html, html } from '../html/html.ts'
import { scrolling } from '../html/parts.ts'
import { count, shortDay } from '../html/words.ts'
import type { KeyUsage, UsageCounts } from './usage-reader.ts'

/** One row a day, the newest first, and the sums. Days without a request are left out. */
export function usageTable(days: KeyUsage['days']): Html {
  const withRequests = days.filter(day => requestsOf(day) > 0).toReversed()
  return scrolling(
    'Requests by day and status',
    html`<table>
<caption>Requests by UTC day and status. Days without requests are left out.</caption>
<thead><tr><th scope="col">Day</th><th scope="col" class="number">All</th>${outcomes.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}</tr></thead>
<tbody>
${withRequests.map(day => row(shortDay(day.day), day))}
</tbody>
<tfoot>
${row(html`${days.length}\u00a0days`, totalOf(days))}
</tfoot>
</table>`,
  )
}

/** What the colours of the graph mean. */
export function usageLegend(): Html {
  return html`<ul class="legend">
${outcomes.map(
  ({
    outcome,
    name,
    meaning,
  }) => html`<li><span class="swatch ${classOf(outcome)}"></span><strong>${name}</strong> ${meaning}</li>
`,
)}
</ul>`
}

function row(title: Html, counts: UsageCounts): Html {
  return html`<tr><th scope="row">${title}</th><td class="number">${count(requestsOf(counts))}</td>${outcomes.map(({ outcome }) => html`<td class="number">${count(counts[outcome])}</td>`)}</tr>
`
}

/* The outcomes that usage is shown by: their order in graphs and tables, and their names. */

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
