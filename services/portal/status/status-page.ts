/** The page /status: how the service is now, and how fresh the data was in 90 days, as it was measured. */
import type { FastifyInstance } from 'fastify'
import { within } from '../../runtime/async/sleep.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Portal } from '../app.ts'
import { liveCard } from '../guide/landing.ts'
import type { LiveState } from '../guide/readings.ts'
import { timeBars } from '../html/bars.ts'
import { type Html, html } from '../html/html.ts'
import { notice, stack } from '../html/parts.ts'
import { count, countOf, dayText, moment } from '../html/words.ts'
import type { Freshness, Minutes } from './freshness.ts'

/** How long the page waits for the last 90 days. */
const pageMsMax = 4_000

export function addStatusPage(app: FastifyInstance, { liveState, freshness, logger }: Portal): void {
  app.get('/status', async (_request, reply) => {
    const [live, read] = await Promise.all([
      liveState(),
      within(pageMsMax, freshness()).catch((error: unknown) => {
        logger.warn({ error: messageOf(error) }, 'the freshness of the last 90 days cannot be read')
        return undefined
      }),
    ])
    return reply.page({
      title: 'Status',
      description: 'How fresh the data is now, and how fresh it was in the last 90 days.',
      path: '/status',
      content: statusContent(live, read),
    })
  })
}

/** `freshness`: undefined if it cannot be read. */
export function statusContent(live: LiveState, freshness: Freshness | undefined): Html {
  return html`<h1>Status</h1>
${liveCard(live)}
<h2>The last 90 days</h2>
<p>Once a minute this site reads the data as the API shows it. A minute is <strong>up to date</strong> if every change that this service had processed two minutes before can be read. Changes that still wait in the platform's log are not seen here. Minutes in which the site itself did not run are not measured, and a day without any is left blank. The answers of the API are not measured here.</p>
${freshness === undefined ? notice('The last 90 days cannot be read at the moment. Try again in a minute.', 'warning') : history(freshness)}`
}

const percent = (share: number) => `${Math.floor(share * 10_000) / 100} %`
const share = (minutes: number, day: Minutes) => (100 * minutes) / Math.max(1, measuredOf(day))
const measuredOf = ({ fresh, behind, away }: Minutes) => fresh + behind + away

function history({ days, incidents }: Freshness): Html {
  const sum = (name: keyof Minutes) => days.reduce((total, day) => total + day[name], 0)
  const total = { fresh: sum('fresh'), behind: sum('behind'), away: sum('away') }
  if (measuredOf(total) === 0) return html`<p>Nothing was measured yet.</p>`
  const text = `${percent(total.fresh / measuredOf(total))} of ${countOf(measuredOf(total), 'measured minute')} were up to date.`
  const every = Math.ceil(days.length / 4)
  const bars = days.map((day, index) => ({
    label: index % every === 0 ? dayText(day.day).slice(0, -5) : '',
    title: `${dayText(day.day)}: ${count(day.fresh)} minutes up to date, ${count(day.behind)} behind, ${count(day.away)} not readable`,
    parts: [
      { kind: 'ok', value: share(day.fresh, day) },
      { kind: 'too-many', value: share(day.behind, day) },
      { kind: 'unauthorized', value: share(day.away, day) },
    ],
  }))
  const frame = { id: 'freshness', title: 'Freshness by day', description: text }
  return html`<p>${text}</p>
${timeBars(frame, bars, value => `${value} %`)}
<ul class="legend"><li><span class="swatch ok"></span>up to date</li><li><span class="swatch too-many"></span>behind</li><li><span class="swatch unauthorized"></span>not readable</li></ul>
<details><summary>The days as a table</summary>${stack(
    ['Day', 'Up to date', 'Behind', 'Not readable'],
    days
      .filter(day => measuredOf(day) > 0)
      .toReversed()
      .map(({ day, fresh, behind, away }) => [dayText(day), fresh, behind, away]),
    'Measured minutes by UTC day',
  )}</details>
<h2>Incidents</h2>
<p>Two or more measured minutes in a row that were not up to date. The latest 50 are listed.</p>
${
  incidents.length === 0
    ? html`<p>None in the last 90 days.</p>`
    : stack(
        ['Began', 'Last seen', 'Minutes behind', 'Minutes not readable'],
        incidents.map(({ began_at, last_at, behind, away }) => [
          moment(began_at),
          moment(last_at),
          behind,
          away,
        ]),
      )
}`
}
