/** The page for data teams, /data: how to connect, three pictures of the platform, questions as SQL, and the views with their columns. */
import type { FastifyInstance } from 'fastify'
import { readPublicViews } from '../../tables/schema/public-views.ts'
import type { Portal } from '../app.ts'
import { timeBars } from '../html/bars.ts'
import { type Html, html, prose } from '../html/html.ts'
import { codeBlock, notice, stack, webLink } from '../html/parts.ts'
import { count, countOf, dayText, moment } from '../html/words.ts'
import { connectSection, dictionarySection } from './data-connect.ts'
import { type Example, playLink, readExamples } from './data-examples.ts'
import {
  type Answers,
  answerRowsMax,
  type CategorySuccess,
  type DataAbout,
  type DataPictures,
  type FundingDay,
  type TopCampaign,
} from './readings.ts'

/** Adds the page. What is in files is read once: it is the same for everybody. */
export function addDataPage(app: FastifyInstance, { pictures, answers, options }: Portal): void {
  const { viewsDatabase, sqlUrl } = options
  const examples = readExamples(viewsDatabase)
  const settings = [connectSection(sqlUrl, viewsDatabase), dictionarySection(readPublicViews())]
  app.get('/data', async (_request, reply) => {
    const shown = dataContent(await pictures(), settings)
    return reply.page({
      title: 'For data teams',
      description: 'Pictures of the platform, how to connect, and questions as SQL with their answers.',
      path: '/data',
      content: html`${shown}${examplesSection(examples, sqlUrl, await answers())}`,
    })
  })
}

/** More labels would overlap. */
const timeLabelsMax = 4
const loopback = /^https?:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)/

/** `settings`: what does not depend on the data. */
export function dataContent(pictures: DataPictures, settings: readonly Html[]): Html {
  const { about, funding, categories, campaigns } = pictures
  const currency = about?.currency ?? ''
  return html`<h1>For data teams</h1>
<p class="lead">The public campaigns as tables that you query with SQL: every field of the API, reward tiers, and a history by day. Here are three pictures of them, <a href="#connect">how to connect</a>, <a href="#views">the views</a>, and <a href="#questions">questions with their answers</a>.</p>
${about ? aboutCard(about) : notice('The data cannot be read at the moment. Try again in a minute.', 'warning')}
${section('funding', 'Funding by day', funding && fundingPicture(funding, currency))}
${section('success', 'Success by category', categories && successPicture(categories))}
${section('top', 'Top campaigns', campaigns && topPicture(campaigns, currency))}
${settings}`
}

/** The questions as SQL. `sqlUrl`: where the SQL port can be reached, if it can. */
export function examplesSection(
  examples: readonly Example[],
  sqlUrl: string | undefined,
  answers: Answers,
): Html {
  return html`<section aria-labelledby="questions">
<h2 id="questions">${count(examples.length)} questions as SQL</h2>
<p>Each is a query that you can copy and change. They name only the views of the contract, so they keep working. Below each is the beginning of its answer. Answers that are older than five minutes are read again when somebody opens the page. If nobody has opened it for a long time, load it again after a minute.</p>
${sqlUrl === undefined ? html`<p>Ask the operator of this service how you reach its SQL port.</p>` : playText(sqlUrl)}
${examples.map(example => exampleEntry(example, sqlUrl, answers.get(example.name)))}
</section>`
}

function playText(sqlUrl: string): Html {
  return html`<p>“Open in the play page” opens a query in ClickHouse's own page. Nothing runs until you press Run.${loopback.test(sqlUrl) && html` The SQL port listens only on the machine of this service, <code>${new URL(sqlUrl).origin}</code>. From another machine, forward the port through SSH first.`}</p>`
}

function exampleEntry(
  { name, question, notes, sql }: Example,
  sqlUrl: string | undefined,
  answer: readonly Readonly<Record<string, unknown>>[] | undefined,
): Html {
  return html`<details id="${name}"><summary>${question}</summary>
${notes !== '' && html`<p>${prose(notes)}</p>`}
${sqlUrl !== undefined && html`<p><a href="${playLink(sqlUrl, sql)}" rel="noopener noreferrer">Open in the play page<span class="visually-hidden"> ${question}</span></a></p>`}
${codeBlock({ id: `sql-${name}`, caption: `${name}.sql`, text: sql })}
${answer ? answerTable(question, answer) : html`<p>Its answer cannot be shown at the moment.</p>`}</details>
`
}

function answerTable(question: string, rows: readonly Readonly<Record<string, unknown>>[]): Html {
  const names = Object.keys(rows[0] ?? {})
  if (names.length === 0) return html`<p>The answer has no rows.</p>`
  const cell = (value: unknown) => (typeof value === 'number' ? value : String(value))
  const shown = rows.slice(0, answerRowsMax - 1).map(row => names.map(name => cell(row[name])))
  // An answer may have more columns than a screen is wide: it scrolls sideways.
  const table = html`<div class="scroll" role="region" tabindex="0" aria-label="Answer: ${question}">${stack(names, shown)}</div>`
  return html`${table}${shown.length < rows.length && html`<p>There are more rows.</p>`}`
}

function aboutCard({ campaigns, as_of, currency, history_from, history_kept_from }: DataAbout): Html {
  return html`<section class="card" aria-label="The data as a whole"><dl class="facts">
<div><dt>Public campaigns</dt><dd>${count(campaigns)}</dd></div>
<div><dt>Data as of</dt><dd>${as_of > 0 ? moment(as_of) : 'not yet'}</dd></div>
<div><dt>Currency of all amounts here</dt><dd>${currency === '' ? 'unknown' : currency}</dd></div>
<div><dt>History since</dt><dd>${history_from === '' ? 'not yet' : dayText(history_from)}${history_kept_from > history_from ? `, derived until ${dayText(history_kept_from)}` : ''}</dd></div>
</dl></section>`
}

function section(id: string, title: string, content: Html | undefined): Html {
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
${content ?? html`<p>This picture cannot be drawn at the moment.</p>`}
</section>
`
}

function fundingPicture(points: readonly FundingDay[], currency: string): Html {
  if (points.length === 0) return html`<p>There is nothing to draw yet.</p>`
  const every = Math.ceil(points.length / timeLabelsMax)
  const bars = points.map(({ day, raised, pledges }, index) => ({
    label: index % every === 0 ? dayText(day) : '',
    title: `${dayText(day)}: ${money(raised, currency)}, ${countOf(pledges, 'pledge')}`,
    parts: [{ kind: raised < 0 ? 'too-many' : 'ok', value: raised }],
  }))
  const total = points.reduce((sum, { raised }) => sum + raised, 0)
  const best = points.reduce((most, point) => (point.raised > most.raised ? point : most))
  const description = `From ${dayText(points[0]?.day ?? '')} to ${dayText(points.at(-1)?.day ?? '')}: ${money(total, currency)} in total. The most: ${money(best.raised, currency)}, ${dayText(best.day)}.`
  const rows = points
    .toReversed()
    .map(({ day, raised, pledges }) => [dayText(day), Math.round(raised), pledges])
  return html`<p>Money that came on each of the last 30 UTC days, less what was withdrawn. Today is not over.</p>
${timeBars({ id: 'picture-funding', title: 'Funding by day', description }, bars, value => compact.format(value))}
<details><summary>Funding as a table</summary>${stack(['Day', raisedIn(currency), 'New pledges'], rows)}</details>`
}

function successPicture(categories: readonly CategorySuccess[]): Html {
  if (categories.length === 0) return html`<p>No campaign has ended yet.</p>`
  const rows = categories.map(({ category, ended, funded }) => [
    category,
    meter(funded / ended),
    ...[Math.round((1000 * funded) / ended) / 10, funded, ended],
  ])
  return html`<p>How many of the campaigns that have ended reached their goal, in the categories with the most of them.</p>
${stack(['Category', 'Bar', 'Success, %', 'Funded', 'Ended'], rows)}`
}

function topPicture(campaigns: readonly TopCampaign[], currency: string): Html {
  if (campaigns.length === 0) return html`<p>There is no public campaign yet.</p>`
  const most = Math.max(...campaigns.map(({ raised }) => raised))
  const rows = campaigns.map(({ title, url, raised, backers, category, status }) => [
    webLink(url, html`<bdi>${title}</bdi>`),
    meter(raised / (most || 1)),
    ...[Math.round(raised), backers, category, status],
  ])
  return html`<p>The campaigns that raised most.</p>
${stack(['Campaign', 'Bar', raisedIn(currency), 'Backers', 'Category', 'Status'], rows)}`
}

/** A bar whose length is a share of 1. The number stands beside it. */
function meter(share: number): Html {
  return html`<meter aria-hidden="true" value="${Math.max(0, share).toFixed(3)}"></meter>`
}

function raisedIn(currency: string): string {
  return currency === '' ? 'Raised' : `Raised, ${currency}`
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

function money(amount: number, currency: string): string {
  return `${whole.format(amount)} ${currency}`.trim()
}
