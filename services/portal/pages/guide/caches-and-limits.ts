/** The guide: how old an answer may be, and how often to ask. Pure. */
import { type Html, html } from '../../html/html.ts'
import { limits } from '../limits.ts'

export function cachesSection(): Html {
  return html`<h2 id="caches">How fresh answers are</h2>
<p>An answer may be up to ${limits.cacheSeconds} seconds old, and the one of <code>/stats</code> up to ${limits.statsCacheSeconds} seconds. If you ask more often, you get the same answer again. The headers say how old it is: <code>Age</code> is its age, and <code>Cache-Control</code> how long it stays.</p>
<p>Answers have an <code>ETag</code>. Send it back as <code>If-None-Match</code>, and the answer is an empty 304 if nothing has changed. This saves bytes, not requests: a 304 counts like any other answer.</p>`
}

export function limitsSection(): Html {
  return html`<h2 id="limits">Limits</h2>
<p>A key may send ${limits.requestsPerMinute} requests within any 60 seconds. Every answer says how many are left:</p>
<table class="stack"><thead><tr><th scope="col">Header</th><th scope="col">Meaning</th></tr></thead><tbody>
<tr><th scope="row"><code>X-RateLimit-Limit</code></th><td>the limit</td></tr>
<tr><th scope="row"><code>X-RateLimit-Remaining</code></th><td>how many requests you may send now</td></tr>
<tr><th scope="row"><code>X-RateLimit-Reset</code></th><td>when you may send one again, as a Unix time in seconds</td></tr>
<tr><th scope="row"><code>Retry-After</code></th><td>with a 429 or a 500: how many seconds to wait</td></tr>
</tbody></table>
<p>With ${limits.pageSizeMax} campaigns a page, ${limits.requestsPerMinute} requests read ${(limits.pageSizeMax * limits.requestsPerMinute).toLocaleString('en')} campaigns a minute. Send requests one after the other: of those that no cache can answer, two of a key run at once, and more of them wait.</p>
<p>Requests without a valid key count towards a limit of their network address, also ${limits.requestsPerMinute} a minute. They never use up the limit of a valid key.</p>`
}
