/** The page /access: the integrations of an account, their keys, and what each key did in the last 30 days. */
import { activeKeysMax } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { badge, notice } from '../html/parts.ts'
import { count, countOf, date, moment } from '../html/words.ts'
import type { Integration } from '../ports.ts'
import { requestsOf, totalOf } from '../usage/usage-view.ts'
import { activeCount, isAlive, type KeyState, type KeyView, keyPath, keyState } from './key-state.ts'

export interface OverviewData {
  integrations: readonly Integration[]
  /** All keys of the account, oldest first. */
  keys: readonly KeyView[]
  now: number
  /** What was just done, if the reader comes from a form. */
  done?: string | undefined
  /** The hidden field of every form. */
  csrf: Html
  /** A token for one form. */
  formToken: () => string
}

/** Ended keys of one integration that are listed. Older ones are counted only. */
const endedKeysMax = 20

export function overviewPage(data: OverviewData): Html {
  const { integrations, keys, done, now } = data
  const active = activeCount(
    keys.map(({ key }) => key),
    now,
  )
  return html`<h1>API access</h1>
${done && notice(done, 'good')}
<p class="lead">${activeText(active)}</p>
${usageFault(data)}
${deprecatedNotice(keys)}
${integrations.map(integration => integrationSection(integration, active, data))}
${otherKeys(data)}
${
  integrations.length === 0
    ? html`<section class="card" aria-labelledby="begin"><h2 id="begin">Begin with an integration</h2>
<p>An integration is a program or website of yours that calls the API. Tell us its name, its web address and how to reach you. Then create its key.</p>
<div class="actions"><a class="button" href="/access/integrations/new">Add an integration</a></div></section>`
    : html`<p><a class="button secondary" href="/access/integrations/new">Add another integration</a></p>`
}`
}

function activeText(active: number): string {
  const text = `You have ${count(active)} of ${activeKeysMax} active keys.`
  return active < activeKeysMax ? text : `${text} To get a new one, replace or revoke one of them.`
}

function usageFault({ keys }: OverviewData): Html | undefined {
  if (!keys.some(({ usage }) => usage === undefined)) return undefined
  return notice(
    'The usage of keys cannot be read at the moment. The keys themselves are not affected.',
    'warning',
  )
}

function deprecatedNotice(keys: readonly KeyView[]): Html | undefined {
  const callers = keys
    .map(({ key, usage }) => ({ key, deprecated: usage ? totalOf(usage.days).deprecated : 0 }))
    .filter(({ deprecated }) => deprecated > 0)
  if (callers.length === 0) return undefined
  return html`<section class="notice warning" aria-labelledby="deprecated">
<h2 id="deprecated">A deprecated version is still called</h2>
<p>These keys called a version of the API that will end. <a href="/changes">See what changes, and when</a></p>
<ul>${callers.map(({ key, deprecated }) => html`<li><a href="${keyPath(key)}"><code>${keyPrefix(key.key)}</code></a> (<bdi>${key.name}</bdi>): ${countOf(deprecated, 'request')} in the last 30 days</li>`)}</ul>
</section>`
}

function integrationSection(integration: Integration, active: number, data: OverviewData): Html {
  const path = `/access/integrations/${encodeURIComponent(integration.integration_id)}`
  const keys = data.keys.filter(({ key }) => key.integration_id === integration.integration_id)
  return html`<section class="card">
<div class="heading"><h2><bdi>${integration.name}</bdi></h2>
<div class="actions"><a href="${path}/edit">Edit<span class="visually-hidden"> ${integration.name}</span></a> <a href="${path}/remove">Remove<span class="visually-hidden"> ${integration.name}</span></a></div></div>
<dl class="facts">
<div><dt>Address</dt><dd>${webLink(integration.url)}</dd></div>
<div><dt>Contact</dt><dd>${integration.contact_email}</dd></div>
</dl>
${keyLists(keys, data.now, html`<p>No key yet.</p>`)}
${
  active < activeKeysMax &&
  form({
    action: `${path}/keys`,
    csrf: data.csrf,
    hidden: { token: data.formToken() },
    submit: html`Create a key<span class="visually-hidden"> for ${integration.name}</span>`,
    isSentOnce: true,
  })
}
</section>
`
}

// The topic has what other programs wrote, too: only a web address becomes a link.
function webLink(url: string): Html {
  if (!/^https?:\/\//i.test(url)) return html`${url}`
  return html`<a href="${url}" rel="nofollow noopener noreferrer">${url}</a>`
}

/** Keys that an operator issued, and keys whose integration was removed. */
function otherKeys({ integrations, keys, now }: OverviewData): Html | undefined {
  const known = new Set(integrations.map(({ integration_id }) => integration_id))
  const others = keys.filter(({ key }) => !known.has(key.integration_id))
  if (others.length === 0) return undefined
  return html`<section class="card">
<h2>Keys without an integration</h2>
<p>An operator issued these keys, or their integration was removed.</p>
${keyLists(others, now, undefined)}
</section>
`
}

function keyLists(keys: readonly KeyView[], now: number, ifNone: Html | undefined): Html {
  const alive = keys.filter(({ key }) => isAlive(key, now))
  const ended = keys.filter(({ key }) => !isAlive(key, now)).toReversed()
  return html`${alive.length > 0 ? keyTable(alive, now) : ifNone}
${
  ended.length > 0 &&
  html`<details><summary>${countOf(ended.length, 'ended key')}</summary>
${keyTable(ended.slice(0, endedKeysMax), now)}
${ended.length > endedKeysMax && html`<p>${countOf(ended.length - endedKeysMax, 'older key')} not shown.</p>`}
</details>`
}`
}

function keyTable(keys: readonly KeyView[], now: number): Html {
  return html`<table class="stack">
<thead><tr><th scope="col">Key</th><th scope="col">Status</th><th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Requests, 30 days</th><th scope="col">Actions</th></tr></thead>
<tbody>
${keys.map(view => keyRow(view, now))}
</tbody>
</table>`
}

function keyRow({ key, usage }: KeyView, now: number): Html {
  const path = keyPath(key)
  const prefix = keyPrefix(key.key)
  const state = keyState(key, now)
  return html`<tr>
<th scope="row" data-label="Key"><a href="${path}"><code>${prefix}…</code></a></th>
<td data-label="Status">${statusText(state)}</td>
<td data-label="Created">${date(key.issued_at_ms)}</td>
<td data-label="Last used">${lastUsed(usage)}</td>
<td data-label="Requests, 30 days">${usage ? count(requestsOf(totalOf(usage.days))) : 'not known now'}</td>
<td>${isAlive(key, now) && html`<a href="${path}/replace">Replace<span class="visually-hidden"> ${prefix}</span></a> <a href="${path}/revoke">Revoke<span class="visually-hidden"> ${prefix}</span></a>`}</td>
</tr>
`
}

/** The state of a key in words. */
export function statusText(state: KeyState): Html {
  switch (state.name) {
    case 'active':
      return html`${badge('Active', 'good')}`
    case 'ending':
      return html`${badge('Active, being replaced', 'warning')} It ends on ${moment(state.until)}.`
    case 'waiting':
      return html`${badge('Waiting', 'warning')} It becomes active when one of the older keys ends.`
    case 'revoked':
      return html`${badge('Revoked', 'bad')}`
    case 'ended':
      return html`${badge('Ended', 'bad')}${state.at !== undefined && html` on ${moment(state.at)}`}`
    default:
      return state satisfies never
  }
}

/** When a key was last used, as far as it was counted. */
export function lastUsed(usage: KeyView['usage']): Html {
  if (usage === undefined) return html`not known now`
  return usage.last_used === undefined ? html`no counted use in the last 90 days` : moment(usage.last_used)
}
