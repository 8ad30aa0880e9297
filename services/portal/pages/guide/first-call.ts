/** The guide: from nothing to an answer. Pure. */
import { type Html, html } from '../../html/html.ts'
import { samples } from '../samples/samples.ts'

export function firstCallSection(apiUrl: string): Html {
  return html`<h2 id="first-call">The first call</h2>
<ol class="steps">
<li><a href="/sign-in">Sign in</a> with your e-mail address. This creates a free account; there is no password.</li>
<li>Under <a href="/access">API access</a>, add an integration: the name of your program, its URL, and an address where we reach you before something changes.</li>
<li>Create a key. You see its secret once, so keep it where your program finds it, for example in environment variables:</li>
</ol>
<figure class="code"><figcaption>In your shell</figcaption><pre tabindex="0" role="group" aria-label="In your shell"><code>export PLEDGEVIEW_KEY=pv_live_...
export PLEDGEVIEW_SECRET=...</code></pre></figure>
<p>Then ask for three campaigns:</p>
${samples('first-call', apiUrl)}
<p>The samples in TypeScript use our client, the package <code>@pledgeview/client</code>. It has no dependencies, and runs in Node 20 or later and in browsers. The operator of this API gives it to you as a file; install it with <code>npm install ./pledgeview-client.tgz</code>. The samples in Python need nothing but Python 3.9 or later.</p>
<h3>Key and secret</h3>
<p>Send both in headers, in one of two ways: as <code>X-API-Key</code> and <code>X-API-Secret</code>, or as <code>Authorization: Bearer KEY:SECRET</code>. Never put them into a URL: URLs end up in logs, and the API does not read them there.</p>
<p>Browsers may call the API from any site. But everyone who opens a page can read the secret in it, so keep secrets on your server.</p>
<p>If you lose a secret, replace its key. Up to three keys of an account can be active at once, so you can change to the new one before the old one ends.</p>`
}
