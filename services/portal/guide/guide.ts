/** The guide for people whose program reads the API. Pure. */

import { type ErrorCode, errorBody, errorCodes, errors } from '../../../contracts/api/errors.ts'
import { mirroringSteps } from '../../../contracts/api/mirroring.ts'
import { limitDefault, limitMax } from '../../../contracts/api/parameters.ts'
import type { Config } from '../../runtime/config.ts'
import { type Html, html, prose } from '../html/html.ts'
import { codeBlock } from '../html/parts.ts'
import { type Document, operationsOf } from './openapi.ts'
import { samples } from './samples/samples.ts'

interface GuideData {
  /** The base address that consumers call, with `/api/v1`. */
  apiUrl: string
  /** Whether the portal has the package of the client to download. */
  hasPackage: boolean
  document: Document
  /** The pages name its limits. */
  config: Config
}

const sections: readonly { id: string; title: string; content: (data: GuideData) => Html }[] = [
  { id: 'first-call', title: 'The first call', content: firstCall },
  { id: 'reading', title: 'Read lists', content: reading },
  { id: 'mirroring', title: 'Keep a copy', content: mirroring },
  { id: 'caches', title: 'How fresh answers are', content: caches },
  { id: 'limits', title: 'Limits', content: limitsOfKeys },
  { id: 'errors', title: 'Errors', content: errorCodesAndAdvice },
  { id: 'versions', title: 'Versions', content: versions },
  { id: 'help', title: 'Help and credit', content: help },
]

export function guideContent(data: GuideData): Html {
  return html`<div class="guide">
<aside class="contents"><nav aria-label="On this page">
<p>On this page</p>
<ul>${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>
</nav></aside>
<article>
<h1>Guide</h1>
<p class="lead">The API shows the public campaigns of the platform and its totals, as JSON over HTTP. It only reads, and it has nothing that an anonymous visitor of the website could not see.</p>
<p>The <a href="/reference">reference</a> lists every parameter and field, and sends requests from this site.</p>
${sections.map(
  ({ id, title, content }) => html`<h2 id="${id}">${title}</h2>
${content(data)}
`,
)}</article>
</div>`
}

function help(): Html {
  return html`<p>Every answer has a header <code>X-Request-Id</code>. <a href="/access/requests">Requests</a> finds it among your requests of the last three days. When you report a problem, send it with the first 16 characters of your key. Never send the secret to anyone.</p>
<p>If you publish figures from the API, please credit the platform, and link to the <code>url</code> of the campaign.</p>`
}

function firstCall({ apiUrl, hasPackage }: GuideData): Html {
  return html`<ol>
<li><a href="/sign-in">Sign in</a> with your e-mail address. This creates a free account; there is no password.</li>
<li>Under <a href="/access">API access</a>, create a key: type the name of your program, its web address, and an address where we reach you before something changes.</li>
<li>You see the secret once, so keep it where your program finds it, for example in environment variables:</li>
</ol>
${codeBlock({ id: 'environment', caption: 'In your shell', text: 'export PLEDGEVIEW_KEY=pv_live_...\nexport PLEDGEVIEW_SECRET=...' })}
<p>Then ask for three campaigns:</p>
${samples('first-call', apiUrl)}
<p>The samples in TypeScript use our client, the package <code>@pledgeview/client</code>. It has no dependencies, and runs in Node 20 or later and in browsers. ${hasPackage ? html`<a href="/static/pledgeview-client.tgz" download>Download it</a>, and` : 'The operator of this API gives it to you as a file;'} install it with <code>npm install ./pledgeview-client.tgz</code>. The samples in Python use one module, for Python 3.9 or later: <a href="/static/pledgeview.py" download>download pledgeview.py</a>, put it beside your program, and <code>pip install httpx</code>.</p>
<h3>Key and secret</h3>
<p>Send both in headers, in one of two ways: as <code>X-API-Key</code> and <code>X-API-Secret</code>, or as <code>Authorization: Bearer KEY:SECRET</code>. Never put them into a URL: URLs end up in logs, and the API does not read them there.</p>
<p>Browsers may call the API from any site. But everyone who opens a page can read the secret in it, so keep secrets on your server.</p>
<p>If you lose a secret, create another key, and revoke the old one. Up to three keys of an account can be active at once, so you can change to the new one before you revoke the old one.</p>`
}

function reading({ document }: GuideData): Html {
  return html`<table class="stack"><thead><tr><th scope="col">Request</th><th scope="col">What it does</th></tr></thead><tbody>
${operationsOf(document).map(({ id, path, summary }) => html`<tr><th scope="row"><a href="/reference#${id}"><code>GET ${path}</code></a></th><td>${summary}</td></tr>`)}
</tbody></table>
<p>A campaign is public if it is <code>LIVE</code>, <code>FUNDED</code>, <code>FAILED</code> or <code>CANCELLED</code>. Any other one gets a 404, as if it did not exist.</p>
<p>A page has ${limitDefault} campaigns, or as many as <code>limit</code> says, up to ${limitMax}. As long as <code>pagination.has_more</code> is true, there is a next page: the header <code>Link</code> has its address. The samples below, <a href="#mirroring">which keep a copy</a>, read all pages.</p>
<h3>What fields mean</h3>
<ul>
<li>Recognise a campaign by <code>id</code>. The <code>slug</code> may change; the old one is then not found.</li>
<li>Money is a number in the <code>currency</code> beside it: 15480.5 EUR is 15,480 euros and 50 cents.</li>
<li>Times are in UTC: <code>2026-03-01T12:00:00.000Z</code>.</li>
<li>Every field is always there. Some may be null; the <a href="/reference#objects">reference</a> says which.</li>
<li><code>days_remaining</code> counts down by itself. It is not a change of the campaign, so a copy must compute it: the whole days until <code>end_date</code>, rounded up, and 0 after it.</li>
</ul>`
}

function versions(): Html {
  return html`<p>The version is part of the address: <code>/api/v1</code>. Within a version, fields may be added at any time, so ignore fields that you do not know. What is there stays as it is.</p>
<p>A change that could break a program comes as <code>/api/v2</code>. <a href="/changes">Versions and changes</a> says how you learn that an old version ends.</p>`
}

function mirroring({ apiUrl, config }: GuideData): Html {
  return html`<p>Your own copy of the campaigns stays up to date with one short request a minute. It misses no change, if it keeps one timestamp with care.</p>
<ol>${mirroringSteps.map(step => html`<li>${prose(step)}</li>`)}</ol>
${samples('mirroring', apiUrl)}
<h3>Three things to know</h3>
<ul>
<li><strong>A campaign may come twice.</strong> <code>updated_since</code> includes its moment. To receive a campaign again changes nothing. If answers reach you out of order, keep the one with the later <code>updated_at</code>.</li>
<li><strong>A walk has to come from one snapshot.</strong> All pages of one query do for ${config.PLEDGEVIEW_CACHE_MS / 1000} seconds. Our clients also cope with walks that take longer.</li>
<li><strong>Do not filter.</strong> With <code>status=LIVE</code> you would never learn that a campaign has become <code>FUNDED</code>. Filter in your copy.</li>
</ul>
<h3>Is the copy right?</h3>
<p>The first page of a list without <code>status</code> and <code>category</code> has a header <code>X-Data-Digest</code>: the number of all public campaigns, and a sum of hashes of their <code>id</code> and <code>updated_at</code>. A copy with the same digest is equal. With our clients, <code>verify</code> compares them with one request. If they differ, it reads all campaigns, repairs the copy, and says which campaigns it lacked, had too many, or had in an old state. Stop the mirror of the copy before.</p>
<p>If nothing new comes, look at <code>X-Data-As-Of</code>: it moves on as long as this service processes changes. It does not see changes that still wait in the platform's log. The <a href="/">first page</a> shows it too.</p>`
}

function caches({ config }: GuideData): Html {
  return html`<p>An answer may be up to ${config.PLEDGEVIEW_CACHE_MS / 1000} seconds old, and the one of <code>/stats</code> up to ${config.PLEDGEVIEW_STATS_CACHE_MS / 1000} seconds. If you ask more often, you get the same answer again. The headers say how old it is: <code>Age</code> is its age, and <code>Cache-Control</code> how long it stays.</p>
<p>Answers have an <code>ETag</code>. Send it back as <code>If-None-Match</code>, and the answer is an empty 304 if nothing has changed. This saves bytes, not requests: a 304 counts like any other answer.</p>`
}

function limitsOfKeys({ config }: GuideData): Html {
  const requestsMax = config.PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX
  return html`<p>A key may send ${requestsMax} requests within any 60 seconds. Every answer says how many are left:</p>
<table class="stack"><thead><tr><th scope="col">Header</th><th scope="col">Meaning</th></tr></thead><tbody>
<tr><th scope="row"><code>X-RateLimit-Limit</code></th><td>the limit</td></tr>
<tr><th scope="row"><code>X-RateLimit-Remaining</code></th><td>how many requests you may send now</td></tr>
<tr><th scope="row"><code>X-RateLimit-Reset</code></th><td>when you may send one again, as a Unix time in seconds</td></tr>
<tr><th scope="row"><code>Retry-After</code></th><td>with a 429 or a 500: how many seconds to wait</td></tr>
</tbody></table>
<p>With ${limitMax} campaigns a page, ${requestsMax} requests read ${(limitMax * requestsMax).toLocaleString('en')} campaigns a minute. Send requests one after the other: of those that no cache can answer, two of a key run at once, and more of them wait.</p>
<p>Requests without a valid key count towards a limit of their network address, ${config.PLEDGEVIEW_FAILED_AUTH_PER_MINUTE_MAX} a minute. They never use up the limit of a valid key.</p>`
}

/** A new code does not compile without its advice. */
const advice: Record<ErrorCode, string> = {
  invalid_parameter: 'Correct the parameter that the message names. To send it again does not help.',
  malformed_request: 'Encode the path and the headers correctly. To send it again does not help.',
  unauthorized:
    'Check key and secret. The answer is the same if one is missing, unknown, wrong or revoked. API access shows whether your key is active.',
  forbidden: 'The key may not read. Create another key.',
  not_found: 'There is no such public campaign, or no such path. The slug of a campaign may have changed.',
  method_not_allowed: 'Use `GET`. The API only reads.',
  request_timeout: 'Send the whole request at once, and try again.',
  headers_too_large: 'Send fewer or shorter headers.',
  rate_limited: 'Wait as many seconds as `Retry-After` says, then go on. Poll once a minute at most.',
  internal_error: 'Wait as many seconds as `Retry-After` says, then try again with growing pauses.',
}

function errorCodesAndAdvice(): Html {
  const codes = [...errorCodes].sort((one, other) => errors[one].status - errors[other].status)
  return html`<p>Every answer with a status of 400 or more has this shape. Use <code>code</code> in your program. The message is for people, and its words may change.</p>
${codeBlock({ id: 'error-body', caption: 'The body of an error', text: JSON.stringify(errorBody('rate_limited'), null, 2) })}
<table class="stack"><thead><tr><th scope="col">Status and code</th><th scope="col">What to do</th></tr></thead><tbody>
${codes.map(code => html`<tr id="error-${code}"><th scope="row">${errors[code].status} <code>${code}</code></th><td>${prose(advice[code])}</td></tr>`)}
</tbody></table>
<p>If no answer comes at all, the network failed or the address is wrong: try again with growing pauses. Only 408, 429 and 500 are worth a second try.</p>`
}
