/** The first page: what this is, how it stands now, and how to begin. Pure. */
import { limitMax } from '../../../contracts/api/parameters.ts'
import type { Config } from '../../runtime/config.ts'
import { type Html, html } from '../html/html.ts'
import { badge, codeBlock, type Tone } from '../html/parts.ts'
import { count, moment } from '../html/words.ts'
import type { LiveState } from './readings.ts'
import { sampleText } from './samples/samples.ts'

/** `apiUrl`: the base address that consumers call, with `/api/v1`. */
export function landingContent(data: {
  live: LiveState
  apiUrl: string
  isSignedIn: boolean
  config: Config
}): Html {
  const { live, apiUrl, isSignedIn, config } = data
  return html`<h1>Every public campaign, as data you can build on</h1>
<p class="lead">Pledgeview is a read-only API of a crowdfunding platform: campaigns, funding totals, reward tiers and statistics as JSON. It is free, and your copy misses no change.</p>
<div class="actions">
${isSignedIn ? html`<a class="button" href="/access">Your API access</a>` : html`<a class="button" href="/sign-in?next=/access">Get a key</a>`}
<a class="button secondary" href="/docs">Read the guide</a>
</div>
${liveCard(live, html` <a href="/status">The last 90 days</a>`)}
<h2>One request</h2>
<p>Send your key and secret, and get campaigns. More samples, also in TypeScript and Python, are in the <a href="/docs#first-call">guide</a>.</p>
${codeBlock({ id: 'first-call', caption: 'The three newest campaigns that are live', text: sampleText('first-call', 'sh', apiUrl) })}
<h2>What to expect</h2>
<div class="cards">
<section class="card"><h3>Only public data</h3><p>What an anonymous visitor of the website sees, and nothing else. No backers, no addresses, nothing personal.</p></section>
<section class="card"><h3>${config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX} requests a minute</h3><p>For each key, and three keys for each account. With up to ${limitMax} campaigns a page, that is plenty. <a href="/docs#limits">Limits</a></p></section>
<section class="card"><h3>Fresh within ${config.PLEDGEVIEW_CACHE_MS / 1000} seconds</h3><p>Answers are cached for this time, and statistics for ${config.PLEDGEVIEW_STATS_CACHE_MS / 1000} seconds. Each answer says how old it is. <a href="/docs#caches">Caches</a></p></section>
<section class="card"><h3>A copy without gaps</h3><p>Ask once a minute for what has changed. One timestamp makes sure that you miss nothing. <a href="/docs#mirroring">Keep a copy</a></p></section>
<section class="card"><h3>Errors that say what to do</h3><p>One shape, fixed codes, and advice for each of them. <a href="/docs#errors">Errors</a></p></section>
<section class="card"><h3>No surprises</h3><p>What works today keeps working under <code>/api/v1</code>. Before that ends, we write to you. <a href="/changes">Versions</a></p></section>
</div>`
}

const tones: Record<LiveState['status'], Tone> = {
  'Up to date': 'good',
  Behind: 'warning',
  Unavailable: 'bad',
}

/** How the data is now. `more`: what follows the explanation. */
export function liveCard({ status, campaigns, as_of }: LiveState, more?: Html): Html {
  return html`<section class="card" aria-labelledby="now">
<div class="heading"><h2 id="now">Right now</h2>${badge(status, tones[status])}</div>
<dl class="facts">
<div><dt>Public campaigns</dt><dd>${campaigns === undefined ? 'unknown' : count(campaigns)}</dd></div>
<div><dt>Data as of</dt><dd>${as_of === undefined ? 'unknown' : moment(as_of)}</dd></div>
</dl>
<p class="muted">${explanations[status]}${more}</p>
</section>`
}

const explanations: Record<LiveState['status'], string> = {
  'Up to date':
    "Every change that this service had processed by this moment can be read. Changes that still wait in the platform's log are not seen here.",
  Behind:
    'New changes take longer than usual. What was processed by this moment can be read, and nothing is lost: the rest follows.',
  Unavailable:
    'The data cannot be read at the moment. Requests may fail with a 500; try again with growing pauses.',
}
