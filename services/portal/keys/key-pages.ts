/** The pages of one key: its usage, and the question before it is revoked. */
import { keyPrefix } from '../../api-keys/credentials.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { webLink } from '../html/parts.ts'
import { moment } from '../html/words.ts'
import { usageText } from '../usage/usage-view.ts'
import { isAlive, type KeyView, keyPath, likePath } from './key-state.ts'
import { lastUsed, statusText } from './overview-page.ts'

/** The way back, above the heading of every page under /access. */
export function wayBack(): Html {
  return html`<nav aria-label="Breadcrumb"><a href="/access">API access</a></nav>`
}

/** A key with its usage of the last 30 days. */
export function keyPage({ key, usage }: KeyView, now: number): Html {
  const path = keyPath(key)
  return html`${wayBack()}
<h1>Key <code>${keyPrefix(key.key)}…</code></h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Web address</dt><dd>${webLink(key.url, key.url)}</dd></div>
<div><dt>Contact</dt><dd>${key.contact_email}</dd></div>
<div><dt>Status</dt><dd>${statusText(key, now)}</dd></div>
<div><dt>Created</dt><dd>${moment(key.issued_at_ms)}</dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>${usage ? usageText(usage.days) : 'The usage cannot be read at the moment. The key itself is not affected.'}</p>
<div class="actions"><a class="button" href="/access/requests?key=${encodeURIComponent(keyPrefix(key.key))}">Its requests</a> <a class="button secondary" href="${likePath(key)}">New key like this</a>${isAlive(key, now) && html` <a class="button secondary" href="${path}/edit">Edit</a> <a class="button secondary danger" href="${path}/revoke">Revoke this key</a>`}</div>`
}

/** Asks once more before a key is revoked. */
export function revokePage({ key, usage }: KeyView): Html {
  return html`${wayBack()}
<h1>Revoke key <code>${keyPrefix(key.key)}…</code>?</h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>The API refuses the key within seconds. This cannot be undone. If a program still uses it, first <a href="${likePath(key)}">make a new key like this</a>, and give it to the program.</p>
${form({ action: `${keyPath(key)}/revoke`, submit: 'Revoke this key', isDanger: true, cancel: { href: '/access', text: 'Keep it' } })}`
}
