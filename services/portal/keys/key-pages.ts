/** The pages of one key: its usage, and the questions before it is revoked or replaced. */
import { activeKeysMax } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { moment } from '../html/words.ts'
import { usageText } from '../usage/usage-view.ts'
import { isAlive, type KeyState, type KeyView, keyPath, keyState } from './key-state.ts'
import { lastUsed, statusText } from './overview-page.ts'

export interface KeyPageData {
  view: KeyView
  now: number
}

/** The way back, above the heading of every page under /access. */
export function wayBack(): Html {
  return html`<nav aria-label="Breadcrumb"><a href="/access">API access</a></nav>`
}

/** A key with its usage of the last 30 days. */
export function keyPage({ view, now }: KeyPageData): Html {
  const { key, usage } = view
  const path = keyPath(key)
  const state = keyState(key, now)
  return html`${wayBack()}
<h1>Key <code>${keyPrefix(key.key)}…</code></h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Web address</dt><dd>${webLink(key.url)}</dd></div>
<div><dt>Contact</dt><dd>${key.contact_email}</dd></div>
<div><dt>Status</dt><dd>${statusText(state)}</dd></div>
<div><dt>Created</dt><dd>${moment(key.issued_at_ms)}</dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>${usage ? usageText(usage.days) : 'The usage cannot be read at the moment. The key itself is not affected.'}</p>
<div class="actions"><a class="button" href="/access/requests?key=${encodeURIComponent(keyPrefix(key.key))}">Its requests</a>${isAlive(key, now) && html` <a class="button secondary" href="${path}/edit">Edit</a> <a class="button secondary" href="${path}/replace">Replace this key</a> <a class="button secondary danger" href="${path}/revoke">Revoke this key</a>`}</div>`
}

// The topic has what other programs wrote, too: only a web address becomes a link.
function webLink(url: string): Html {
  if (!/^https?:\/\//i.test(url)) return html`${url}`
  return html`<a href="${url}" rel="nofollow noopener noreferrer">${url}</a>`
}

/** Asks once more before a key is revoked. */
export function revokePage({ view }: Pick<KeyPageData, 'view'>): Html {
  const { key, usage } = view
  return html`${wayBack()}
<h1>Revoke key <code>${keyPrefix(key.key)}…</code>?</h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>The API refuses the key within seconds. This cannot be undone. If a program still uses it, <a href="${keyPath(key)}/replace">replace it</a> instead: then the old key can keep working for a while.</p>
${form({ action: `${keyPath(key)}/revoke`, submit: 'Revoke this key', isDanger: true, cancel: keepIt })}`
}

const keepIt = { href: '/access', text: 'Keep it' }

export interface ReplacePageData extends KeyPageData {
  /** Active keys of the account, this one included. */
  active: number
  formToken: string
}

/** Asks when the old key ends. If the account has no room for both keys, the old one ends at once. */
export function replacePage(data: ReplacePageData): Html {
  const { view, now, active, formToken } = data
  const { key, usage } = view
  const only = whyOnlyAtOnce(keyState(key, now), active)
  return html`${wayBack()}
<h1>Replace key <code>${keyPrefix(key.key)}…</code></h1>
<p>You get a new key with a new secret now, for <bdi>${key.name}</bdi>. The old key was last used: ${lastUsed(usage)}.</p>
${form({
  action: `${keyPath(key)}/replace`,
  hidden: { token: formToken },
  content: html`<fieldset><legend>When does the old key end?</legend>
${overlapChoice('at-once', 'At once', 'A program that still uses it is refused within seconds.', only !== undefined, false)}
${overlapChoice('one-hour', 'After 1 hour', 'Time to change one program.', only === undefined, only !== undefined)}
${overlapChoice('one-day', 'After 24 hours', 'Time to change several.', false, only !== undefined)}
</fieldset>
${only && html`<p>${only}</p>`}`,
  submit: 'Replace this key',
  cancel: keepIt,
  isSentOnce: true,
})}`
}

function whyOnlyAtOnce(state: KeyState, active: number): string | undefined {
  if (state.name === 'ending') return 'Another key replaces the old one already. So the old key ends at once.'
  if (active < activeKeysMax) return undefined
  return `You have ${activeKeysMax} active keys, the most that an account can have. So the old key has to end at once.`
}

function overlapChoice(
  value: string,
  title: string,
  hint: string,
  isChosen: boolean,
  isDisabled: boolean,
): Html {
  return html`<label><input type="radio" name="overlap" value="${value}" required${isChosen && html` checked`}${isDisabled && html` disabled`}> <span>${title} <small class="muted">${hint}</small></span></label>
`
}
