/** The requests of a key by day and outcome: a sentence, a picture with its legend, and a table with every number. */
import { timeBars } from '../html/bars.ts'
import { type Html, html } from '../html/html.ts'
import { scrolling } from '../html/parts.ts'
import { count, countOf, dayText, shortDay } from '../html/words.ts'
import type { KeyUsage, UsageCounts } from './usage-reader.ts'

type Days = Readonly<KeyUsage['days']>

/** What a request ended in. Each request has exactly one of these; `deprecated` counts across them. */
type Outcome = Exclude<keyof UsageCounts, 'deprecated'>

/** In the order of the picture, from the bottom. */
const outcomes: readonly { outcome: Outcome; name: string; meaning: string }[] = [
  { outcome: 'ok', name: '200', meaning: 'answered' },
  { outcome: 'not_modified', name: '304', meaning: 'not modified' },
  { outcome: 'unauthorized', name: '401', meaning: 'wrong secret, or the key has ended' },
  { outcome: 'too_many', name: '429', meaning: 'over the limit' },
  { outcome: 'other', name: 'Other', meaning: 'other answers, such as 400 and 404' },
]

/** Every so many days have their date below them. */
const labelEvery = 7

/** All requests of these counts, whatever they ended in. */
export function requestsOf(counts: UsageCounts): number {
  return outcomes.reduce((sum, { outcome }) => sum + counts[outcome], 0)
}

/** The counts of all days together. */
export function totalOf(days: Days): UsageCounts {
  const total: UsageCounts = { ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 }
  for (const day of days)
    for (const name of Object.keys(total) as (keyof UsageCounts)[]) total[name] += day[name]
  return total
}

/** What the picture shows, in one sentence. */
export function usageText(days: Days): string {
  const total = totalOf(days)
  const parts = outcomes
    .filter(({ outcome }) => total[outcome] > 0)
    .map(
      ({ outcome, name }) =>
        `${countOf(total[outcome], 'answer')} ${name === 'Other' ? 'with another status' : name}`,
    )
  const requests = `${countOf(requestsOf(total), 'request')} in the last ${days.length} days`
  return parts.length === 0 ? `${requests}.` : `${requests}: ${parts.join(', ')}.`
}

/** One bar a day, and what its colours mean. */
export function usagePicture(days: Days): Html {
  const bars = days.map((day, index) => ({
    label: index % labelEvery === 0 ? dayText(day.day).slice(0, -5) : '',
    title: dayTitle(day),
    parts: outcomes.map(({ outcome }) => ({ kind: classOf(outcome), value: day[outcome] })),
  }))
  return html`${timeBars({ id: 'usage', title: 'Requests by day', description: usageText(days) }, bars, count)}
<ul class="legend">
${outcomes.map(
  ({ outcome, name, meaning }) =>
    html`<li><span class="swatch ${classOf(outcome)}"></span><strong>${name}</strong> ${meaning}</li>
`,
)}
</ul>`
}

function dayTitle(day: Days[number]): string {
  const parts = outcomes
    .filter(({ outcome }) => day[outcome] > 0)
    .map(({ outcome, name }) => `${name}: ${day[outcome]}`)
  return `${dayText(day.day)}: ${countOf(requestsOf(day), 'request')}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`
}

/** The class of the stylesheet that gives the outcome its colour. */
function classOf(outcome: Outcome): string {
  return outcome.replaceAll('_', '-')
}

/** One row a day, the newest first, and the sums. Days without a request are left out. */
export function usageTable(days: Days): Html {
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

function row(title: Html, counts: UsageCounts): Html {
  return html`<tr><th scope="row">${title}</th><td class="number">${count(requestsOf(counts))}</td>${outcomes.map(({ outcome }) => html`<td class="number">${count(counts[outcome])}</td>`)}</tr>
`
}
