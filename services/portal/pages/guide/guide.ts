/** The guide for people whose program reads the API. Pure. */
import { type Html, html } from '../../html/html.ts'
import { cachesSection, limitsSection } from './caches-and-limits.ts'
import { errorsSection } from './errors.ts'
import { firstCallSection } from './first-call.ts'
import { mirroringSection } from './mirroring.ts'
import { readingSection, versionsSection } from './reading.ts'

export interface GuideData {
  /** The base address that consumers call, with `/api/v1`. */
  apiUrl: string
}

const contents = [
  { id: 'first-call', title: 'The first call' },
  { id: 'reading', title: 'Read lists' },
  { id: 'mirroring', title: 'Keep a copy' },
  { id: 'caches', title: 'How fresh answers are' },
  { id: 'limits', title: 'Limits' },
  { id: 'errors', title: 'Errors' },
  { id: 'versions', title: 'Versions' },
  { id: 'help', title: 'Help and credit' },
] as const

export function guideContent({ apiUrl }: GuideData): Html {
  return html`<div class="guide">
<nav class="contents" aria-label="On this page">
<p>On this page</p>
<ul>${contents.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul>
</nav>
<article>
<h1>Guide</h1>
<p class="lead">The API shows the public campaigns of the platform and its totals, as JSON over HTTP. It only reads, and it has nothing that an anonymous visitor of the website could not see.</p>
<p>The <a href="/reference">reference</a> lists every parameter and field, and sends requests from this site.</p>
${firstCallSection(apiUrl)}
${readingSection(apiUrl)}
${mirroringSection(apiUrl)}
${cachesSection()}
${limitsSection()}
${errorsSection()}
${versionsSection()}
${helpSection()}
</article>
</div>`
}

function helpSection(): Html {
  return html`<h2 id="help">Help and credit</h2>
<p>When you report a problem, send the header <code>X-Request-Id</code> of the answer, and the first 16 characters of your key. Never send the secret to anyone.</p>
<p>If you publish figures from the API, please credit the platform, and link to the <code>url</code> of the campaign.</p>`
}
