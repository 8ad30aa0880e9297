/** The page that says why something was not done, and where to go on. */
import { type Html, html } from '../html/html.ts'
import { notice } from '../html/parts.ts'
import { wayBack } from './key-pages.ts'

export function problemPage({ title, reason }: { title: string; reason: string }): Html {
  return html`${wayBack()}
<h1>${title}</h1>
${notice(reason, 'bad')}
<p><a class="button" href="/access">Back to API access</a></p>`
}
