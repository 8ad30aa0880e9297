/** The page for data teams: three pictures of the platform, and questions as SQL. Pure. */

import type { FastifyInstance } from 'fastify'
import type { Portal } from '../app.ts'
import { type Bar, nameBars, timeBars } from '../html/bars.ts'
import { type Html, html, prose } from '../html/html.ts'
import { codeBlock, notice, scrolling } from '../html/parts.ts'
import { count, countOf, dayText, moment } from '../html/words.ts'
import { type Example, playLink, readExamples } from './data-examples.ts'
import type {
  CategorySuccess,
  DataAbout,
  DataPictures,
  FundingPicture,
  TopCampaign,
} from './data-pictures.ts'

export interface DataPageData {
  pictures: DataPictures
  /** `examplesSection`: it is the same for everybody. */
  examples: Html
}

/** More labels would overlap. */
const timeLabelsMax = 4
const loopback = /^https?:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)/

export function dataContent({ pictures, examples }: DataPageData): Html {
  const { about, funding, categories, campaigns } = pictures
  const currency = about?.currency ?? ''
  return html`<h1>For data teams</h1>
<p class="lead">The public campaigns as tables that you query with SQL: every field of the API, reward tiers, and a history by day. Here are three pictures of them, and ${examplesAnchor}.</p>
${about ? aboutCard(about) : notice('The data cannot be read at the moment. Try again in a minute.', 'warning')}
${section('funding', funding?.per === 'month' ? 'Funding by month of launch' : 'Funding by day', funding && fundingPicture(funding, about, currency))}
${section('success', 'Success by category', categories && successPicture(categories))}
${section('top', 'Top campaigns', campaigns && topPicture(campaigns, currency))}
${examples}`
}

const examplesAnchor = html`<a href="#questions">questions that you can run</a>`

/** The questions as SQL. `sqlUrl`: where the SQL port can be reached, if it can. */
export function examplesSection(examples: readonly Example[], sqlUrl: string | undefined): Html {
  return html`<section aria-labelledby="questions">
<h2 id="questions">${count(examples.length)} questions as SQL</h2>
<p>Each is a query that you can copy and change. They name only the views of the contract, so they keep working.</p>
${sqlUrl === undefined ? html`<p>Ask the operator of this service how you reach its SQL port.</p>` : playText(sqlUrl)}
${examples.map(example => exampleEntry(example, sqlUrl))}
</section>`
}

function playText(sqlUrl: string): Html {
  return html`<p>“Open in the play page” opens a query in ClickHouse's own page. Nothing runs until you press Run.${loopback.test(sqlUrl) && html` The SQL port listens only on the machine of this service, <code>${new URL(sqlUrl).origin}</code>. From another machine, forward the port through SSH first.`}</p>`
}

function exampleEntry({ name, question, notes, sql }: Example, sqlUrl: string | undefined): Html {
  return html`<details id="${name}"><summary>${question}</summary>
${notes !== '' && html`<p>${prose(notes)}</p>`}
${sqlUrl !== undefined && html`<p><a href="${playLink(sqlUrl, sql)}" rel="noopener noreferrer">Open in the play page<span class="visually-hidden"> ${question}</span></a></p>`}
${codeBlock({ id: `sql-${name}`, caption: `${name}.sql`, text: sql })}</details>
`
}

function aboutCard({ campaigns, as_of, currency, history_from }: DataAbout): Html {
  return html`<section class="card" aria-label="The data as a whole"><dl class="facts">
<div><dt>Public campaigns</dt><dd>${count(campaigns)}</dd></div>
<div><dt>Data as of</dt><dd>${as_of > 0 ? moment(as_of) : 'not yet'}</dd></div>
<div><dt>Currency of all amounts here</dt><dd>${currency === '' ? 'unknown' : currency}</dd></div>
<div><dt>History since</dt><dd>${history_from === '' ? 'not yet' : dayText(history_from)}</dd></div>
</dl></section>`
}

function section(id: string, title: string, content: Html | undefined): Html {
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
${content ?? html`<p>This picture cannot be drawn at the moment.</p>`}
</section>
`
}

function fundingPicture(
  { per, points }: FundingPicture,
  about: DataAbout | undefined,
  currency: string,
): Html {
  if (points.length === 0) return html`<p>There is nothing to draw yet.</p>`
  const name = per === 'day' ? dayText : monthText
  const every = Math.ceil(points.length / timeLabelsMax)
  const bars = points.map(({ day, raised, pledges }, index) => {
    const label = index % every === 0 ? (per === 'day' ? dayText(day).slice(0, -5) : name(day)) : ''
    const title = `${name(day)}: ${money(raised, currency)}, ${countOf(pledges, 'pledge')}`
    return { label, title, parts: [{ kind: raised < 0 ? 'too-many' : 'ok', value: raised }] }
  })
  const total = points.reduce((sum, { raised }) => sum + raised, 0)
  const best = points.reduce((most, point) => (point.raised > most.raised ? point : most))
  const description = `From ${name(points[0]?.day ?? '')} to ${name(points.at(-1)?.day ?? '')}: ${money(total, currency)} in total. The most: ${money(best.raised, currency)}, ${name(best.day)}.`
  const what =
    per === 'day'
      ? 'Money that came on each of the last 30 UTC days, less what was withdrawn. Today is not over.'
      : `What the campaigns of each month have raised, by the month of their launch.${about?.history_from === '' ? '' : ' Once the history has some days, you see the money of each day here.'}`
  return html`<p>${what}</p>
${timeBars(
  {
    id: 'picture-funding',
    title: per === 'day' ? 'Funding by day' : 'Funding by month of launch',
    description,
  },
  bars,
  value => compact.format(value),
)}
${figures(
  'Funding as a table',
  [per === 'day' ? 'Day' : 'Month', 'Raised', 'New pledges'],
  points.toReversed().map(({ day, raised, pledges }) => [name(day), money(raised, currency), count(pledges)]),
)}`
}

function successPicture(categories: readonly CategorySuccess[]): Html {
  if (categories.length === 0) return html`<p>No campaign has ended yet.</p>`
  const bars = categories.map(({ category, ended, funded }): Bar => {
    const text = percentText(funded, ended)
    return {
      label: category,
      value: funded / ended,
      text,
      title: `${category}: ${text}, ${count(funded)} of ${countOf(ended, 'campaign')}`,
    }
  })
  const [best, worst] = [bars.at(0), bars.at(-1)]
  const description = `Of ${countOf(categories.length, 'category', 'categories')}, the best is ${best?.label} with ${best?.text}, and the last ${worst?.label} with ${worst?.text}.`
  return html`<p>How many of the campaigns that have ended reached their goal.${categories.length === 15 && ' The 15 categories with the most of them.'}</p>
${nameBars({ id: 'picture-success', title: 'Success by category', description }, bars, 1)}
${figures(
  'Success by category as a table',
  ['Category', 'Success', 'Funded', 'Ended'],
  categories.map(({ category, ended, funded }) => [
    category,
    percentText(funded, ended),
    count(funded),
    count(ended),
  ]),
)}`
}

function topPicture(campaigns: readonly TopCampaign[], currency: string): Html {
  if (campaigns.length === 0) return html`<p>There is no public campaign yet.</p>`
  const bars = campaigns.map(({ title, raised, backers }): Bar => {
    const text = money(raised, currency)
    return { label: title, value: raised, text, title: `${title}: ${text}, ${countOf(backers, 'backer')}` }
  })
  const description = `The ${countOf(bars.length, 'campaign')} that raised most, the highest first: ${bars[0]?.label} with ${bars[0]?.text}.`
  const most = Math.max(...campaigns.map(({ raised }) => raised))
  return html`<p>The campaigns that raised most.</p>
${nameBars({ id: 'picture-top', title: 'Top campaigns', description }, bars, most)}
${figures(
  'Top campaigns as a table',
  ['Campaign', 'Raised', 'Backers', 'Category', 'Status'],
  campaigns.map(({ title, url, raised, backers, category, status }) => [
    campaignLink(title, url),
    money(raised, currency),
    count(backers),
    category,
    status,
  ]),
)}`
}

// What creators typed: only a web address becomes a link.
function campaignLink(title: string, url: string): Html {
  if (!/^https?:\/\//i.test(url)) return html`<bdi>${title}</bdi>`
  return html`<a href="${url}" rel="nofollow noopener noreferrer"><bdi>${title}</bdi></a>`
}

function figures(
  label: string,
  heads: readonly string[],
  rows: readonly (readonly (Html | string)[])[],
): Html {
  const isNumber = (index: number): boolean => index > 0 && index < (heads.length === 5 ? 3 : heads.length)
  return html`<details><summary>${label}</summary>
${scrolling(
  label,
  html`<table>
<thead><tr>${heads.map((head, index) => html`<th scope="col"${isNumber(index) && html` class="number"`}>${head}</th>`)}</tr></thead>
<tbody>
${rows.map(
  row => html`<tr>${row.map((cell, index) =>
    index === 0
      ? html`<th scope="row">${cell}</th>`
      : html`<td${isNumber(index) && html` class="number"`}>${cell}</td>`,
  )}</tr>
`,
)}</tbody>
</table>`,
)}</details>`
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

function money(amount: number, currency: string): string {
  return `${whole.format(amount)} ${currency}`.trim()
}

function percentText(part: number, all: number): string {
  return `${Math.round((1000 * part) / all) / 10} %`
}

/** `Nov 2026` for `2026-11-01`. */
function monthText(day: string): string {
  return dayText(day).replace(/^\d+ /, '')
}

/** The page /data. */

/** Adds the page. The examples are read once. */
export function addDataPage(app: FastifyInstance, { pictures, options }: Portal): void {
  const examples = examplesSection(readExamples(options.viewsDatabase), options.sqlUrl)
  app.get('/data', async (_request, reply) =>
    reply.page({
      title: 'For data teams',
      description: 'Pictures of the platform, and questions on it as SQL that you can run.',
      path: '/data',
      content: dataContent({ pictures: await pictures(), examples }),
    }),
  )
}
