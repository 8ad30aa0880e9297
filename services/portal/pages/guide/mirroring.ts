/** The guide: how to keep a copy and miss no change. Pure. */
import { type Html, html } from '../../html/html.ts'
import { limits } from '../limits.ts'
import { samples } from '../samples/samples.ts'

export function mirroringSection(apiUrl: string): Html {
  return html`<h2 id="mirroring">Keep a copy</h2>
<p>Your own copy of the campaigns stays up to date with one short request a minute. It misses no change, if it keeps one timestamp with care.</p>
<ol class="steps">
<li>Read all pages of <code>/projects</code> once: a <em>walk</em>. Keep the header <code>X-Data-As-Of</code> of its <strong>first</strong> page. This is your <em>watermark</em>: the list has every change up to this moment.</li>
<li>A minute later, walk again with <code>updated_since</code> and the watermark. You get only what has changed. Replace each campaign in your copy, by <code>id</code>.</li>
<li>Keep the watermark of this walk's first page for the next one. Save it together with the copy, after the whole walk.</li>
</ol>
${samples('mirroring', apiUrl)}
<h3>Four things to know</h3>
<ul>
<li><strong>A campaign may come twice.</strong> <code>updated_since</code> includes its moment. To receive a campaign again changes nothing. If answers reach you out of order, keep the one with the later <code>updated_at</code>.</li>
<li><strong>A walk has to come from one snapshot.</strong> All pages of one query do for ${limits.cacheSeconds} seconds. If a later page has another <code>X-Snapshot-Id</code> than the first, a campaign may have moved between the pages: keep what you got, keep the old watermark, and walk again. Our client does this for you, and also copes with walks that take longer than a snapshot.</li>
<li><strong>Campaigns can disappear.</strong> One that is no longer public is simply not in the list any more. Once a day, read everything, and remove what is gone.</li>
<li><strong>Do not filter.</strong> With <code>status=LIVE</code> you would never learn that a campaign has become <code>FUNDED</code>. Filter in your copy.</li>
</ul>
<p><code>days_remaining</code> changes every day without a change of the campaign. Compute it from <code>end_date</code> when you show it.</p>
<p>If nothing new comes, look at <code>X-Data-As-Of</code>: it moves on as long as our data is up to date. The <a href="/">first page</a> shows it too.</p>`
}
