/** The guide: what lists and fields look like, and what stays the same. Pure. */
import { type Html, html } from '../../html/html.ts'
import { limits } from '../limits.ts'
import { samples } from '../samples/samples.ts'

export function readingSection(apiUrl: string): Html {
  return html`<h2 id="reading">Read lists</h2>
<p>There are three requests:</p>
<table class="stack"><thead><tr><th scope="col">Request</th><th scope="col">Answer</th></tr></thead><tbody>
<tr><th scope="row"><code>GET /projects</code></th><td>a page of public campaigns</td></tr>
<tr><th scope="row"><code>GET /projects/{slug}</code></th><td>one campaign, with description, risks and reward tiers</td></tr>
<tr><th scope="row"><code>GET /stats</code></th><td>the totals of the platform</td></tr>
</tbody></table>
<p>A campaign is public if it is <code>LIVE</code>, <code>FUNDED</code>, <code>FAILED</code> or <code>CANCELLED</code>. Any other one gets a 404, as if it did not exist.</p>
<p>A page has ${limits.pageSizeDefault} campaigns, or as many as <code>limit</code> says, up to ${limits.pageSizeMax}. As long as <code>pagination.has_more</code> is true, there is a next page: the header <code>Link</code> has its address.</p>
${samples('paging', apiUrl)}
<h3>What fields mean</h3>
<ul>
<li>Recognise a campaign by <code>id</code>. The <code>slug</code> may change; the old one is then not found.</li>
<li>Money is a number in the <code>currency</code> beside it: 15480.5 EUR is 15,480 euros and 50 cents.</li>
<li>Times are in UTC: <code>2026-03-01T12:00:00.000Z</code>.</li>
<li>Every field is always there. Some may be null; the <a href="/reference#objects">reference</a> says which.</li>
<li><code>days_remaining</code> counts down by itself. It is not a change of the campaign, so a copy must compute it: the whole days until <code>end_date</code>, rounded up, and 0 after it.</li>
</ul>`
}

export function versionsSection(): Html {
  return html`<h2 id="versions">Versions</h2>
<p>The version is part of the address: <code>/api/v1</code>. Within a version, fields may be added at any time, so ignore fields that you do not know. What is there stays as it is.</p>
<p>A change that could break a program comes as <code>/api/v2</code>. Before the old version ends, we write to the contact address of each integration, and its answers carry the headers <code>Deprecation</code> and <code>Sunset</code>. <a href="/changes">Versions and changes</a></p>`
}
