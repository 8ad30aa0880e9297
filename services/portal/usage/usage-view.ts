/** The requests of keys by day or hour, and outcome: a sentence, a picture with its legend, and a table with every number. */
import { timeBars } from '../html/bars.ts'
import { type Html, html } from '../html/html.ts'
import { stack } from '../html/parts.ts'
import { count, countOf, dayText } from '../html/words.ts'
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

/** All requests of these counts, whatever they ended in. */
export function requestsOf(counts: UsageCounts): number {
  return outcomes.reduce((sum, { outcome }) => sum + counts[outcome], 0)
}

/** The counts of several keys together, by their days. */
export function sumOf(keys: readonly Days[]): KeyUsage['days'] {
  return [...Map.groupBy(keys.flat(), ({ day }) => day)].map(([day, rows]) => ({ ...totalOf(rows), day }))
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
  const requests = `${countOf(requestsOf(total), 'request')} in the last ${days.length} ${unitOf(days)}s`
  return parts.length === 0 ? `${requests}.` : `${requests}: ${parts.join(', ')}.`
}

function unitOf(days: Days): 'hour' | 'day' {
  return isHour(days[0]?.day ?? '') ? 'hour' : 'day'
}

function isHour(day: string): boolean {
  return day.length > 10
}

/** `22 Nov 2026`, with `14:00 UTC` for an hour. */
function timeText(day: string): string {
  return isHour(day) ? `${dayText(day)}, ${day.slice(11)}:00 UTC` : dayText(day)
}

/** One bar a day or an hour, and what its colours mean. Every seventh day and each midnight has its date below. */
export function usagePicture(days: Days): Html {
  const isNamed = (day: string, index: number) => (isHour(day) ? day.endsWith('T00') : index % 7 === 0)
  const bars = days.map((day, index) => ({
    label: isNamed(day.day, index) ? dayText(day.day).slice(0, -5) : '',
    title: dayTitle(day),
    parts: outcomes.map(({ outcome }) => ({ kind: classOf(outcome), value: day[outcome] })),
  }))
  return html`${timeBars({ id: 'usage', title: `Requests by ${unitOf(days)}`, description: usageText(days) }, bars, count)}
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
  return `${timeText(day.day)}: ${countOf(requestsOf(day), 'request')}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`
}

/** The class of the stylesheet that gives the outcome its colour. */
function classOf(outcome: Outcome): string {
  return outcome.replaceAll('_', '-')
}

/** One row a day or an hour, the newest first. Those without a request are left out. */
export function usageTable(days: Days): Html {
  const withRequests = days.filter(day => requestsOf(day) > 0).toReversed()
  return stack(
    ['Time', 'All', ...outcomes.map(({ name }) => name)],
    withRequests.map(day => [
      html`<time datetime="${day.day}">${timeText(day.day)}</time>`,
      requestsOf(day),
      ...outcomes.map(({ outcome }) => day[outcome]),
    ]),
    `Requests by UTC ${unitOf(days)} and status. Those without requests are left out.`,
  )
}
