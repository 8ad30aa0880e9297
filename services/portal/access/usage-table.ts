/** The requests of a key as a table, and the legend of the graph. */
import { type Html, html } from '../html/html.ts'
import { scrolling } from '../html/parts.ts'
import type { KeyUsage, UsageCounts } from '../ports.ts'
import { classOf, outcomes, requestsOf, totalOf } from './outcomes.ts'
import { count, shortDay } from './words.ts'

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
