/** The pages of keys: /access with all keys of an account, and what each of them did in the last 30 days; a key; the question before it is revoked; and a new key with its secret. */
import { activeKeysMax } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { Manifest } from '../../exports/latest.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { badge, type Cell, codeBlock, copyable, notice, stack, webLink } from '../html/parts.ts'
import { count, countOf, date, moment } from '../html/words.ts'
import type { PortalKey } from '../ports.ts'
import type { KeyUsage } from '../usage/usage-reader.ts'
import { requestsOf, totalOf, usageText } from '../usage/usage-view.ts'
import { copySection } from './copies.ts'
import { isAlive } from './portal-keys.ts'

/** A key with its usage, or without it if the usage could not be read. */
export interface KeyView {
  key: PortalKey
  usage: KeyUsage | undefined
}

/** How many of the keys count against the limit of active keys. */
export function activeCount(keys: readonly PortalKey[]): number {
  return keys.filter(({ status }) => status === 'active').length
}

/** The page of a key. The address has the first 16 characters only: it ends up in logs. */
export function keyPath({ key }: PortalKey): string {
  return `/access/keys/${encodeURIComponent(keyPrefix(key))}`
}

/** The form of a new key, filled from this one. */
function likePath({ key }: PortalKey): string {
  return `/access/keys/new?like=${encodeURIComponent(keyPrefix(key))}`
}

export interface OverviewData {
  /** All keys of the account, oldest first. */
  keys: readonly KeyView[]
  /** The latest whole copy. */
  copy?: Manifest | undefined
  /** What was just done, if the reader comes from a form. */
  done?: string | undefined
}

/** Ended keys that are listed. Older ones are counted only. */
const endedKeysMax = 20

export function overviewPage({ keys, done, copy }: OverviewData): Html {
  const active = activeCount(keys.map(({ key }) => key))
  return html`<h1>API access</h1>
${done && notice(done, 'good')}
<p class="lead">You have ${count(active)} of ${activeKeysMax} active keys.${active >= activeKeysMax && ' To get a new one, revoke one of them.'}</p>
${
  keys.some(({ usage }) => usage === undefined) &&
  notice('The usage of keys cannot be read at the moment. The keys themselves are not affected.', 'warning')
}
${deprecatedNotice(keys)}
${keys.length === 0 && html`<p>Tell us the name and the web address of the program that will call the API, and how to reach you. Then you see its key.</p>`}
${keyLists(keys)}
<div class="actions">${active < activeKeysMax && html`<a class="button" href="/access/keys/new">Create a key</a>`}${keys.length > 0 && html` <a class="button secondary" href="/access/requests">Requests</a>`}</div>
${copy && copySection(copy)}`
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

function keyLists(keys: readonly KeyView[]): Html {
  const alive = keys.filter(({ key }) => isAlive(key))
  const ended = keys.filter(({ key }) => !isAlive(key)).toReversed()
  return html`${alive.length > 0 && keyTable(alive)}
${
  ended.length > 0 &&
  html`<details><summary>${countOf(ended.length, 'ended key')}</summary>
${keyTable(ended.slice(0, endedKeysMax))}
${ended.length > endedKeysMax && html`<p>${countOf(ended.length - endedKeysMax, 'older key')} not shown.</p>`}
</details>`
}`
}

function keyTable(keys: readonly KeyView[]): Html {
  const heads = ['Key', 'Status', 'Created', 'Last used', 'Requests, 30 days', 'Actions']
  return stack(heads, keys.map(keyRow))
}

function keyRow({ key, usage }: KeyView): Cell[] {
  const path = keyPath(key)
  const prefix = keyPrefix(key.key)
  return [
    html`<a href="${path}"><bdi>${key.name}</bdi> <code>${prefix}…</code></a>`,
    statusText(key),
    date(key.issued_at_ms),
    lastUsed(usage),
    usage ? requestsOf(totalOf(usage.days)) : 'not known now',
    html`${isAlive(key) && html`<a href="${likePath(key)}">New key like this<span class="visually-hidden"> ${prefix}</span></a> <a href="${path}/revoke">Revoke<span class="visually-hidden"> ${prefix}</span></a>`}`,
  ]
}

/** The state of a key in words. */
function statusText({ status, expires_at_ms }: PortalKey): Html {
  const end = expires_at_ms !== null && moment(expires_at_ms)
  switch (status) {
    case 'active':
      return html`${badge('Active', 'good')}${end && html` until ${end}`}`
    case 'waiting':
      return html`${badge('Waiting', 'warning')} It becomes active when an older key is revoked, or when a key is created after an older one has ended.`
    case 'revoked':
      return badge('Revoked', 'bad')
    case 'ended':
      return html`${badge('Ended', 'bad')}${end && html` on ${end}`}`
    default:
      return status satisfies never
  }
}

/** When a key was last used, as far as it was counted. */
function lastUsed(usage: KeyView['usage']): Html {
  if (usage === undefined) return html`not known now`
  return usage.last_used === undefined ? html`no counted use in the last 90 days` : moment(usage.last_used)
}

/** The way back, above the heading of every page under /access. */
export const wayBack = html`<nav aria-label="Breadcrumb"><a href="/access">API access</a></nav>`

/** A key with its usage of the last 30 days. */
export function keyPage({ key, usage }: KeyView): Html {
  const path = keyPath(key)
  return html`${wayBack}
<h1>Key <code>${keyPrefix(key.key)}…</code></h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Web address</dt><dd>${webLink(key.url, key.url)}</dd></div>
<div><dt>Contact</dt><dd>${key.contact_email}</dd></div>
<div><dt>Status</dt><dd>${statusText(key)}</dd></div>
<div><dt>Created</dt><dd>${moment(key.issued_at_ms)}</dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>${usage ? usageText(usage.days) : 'The usage cannot be read at the moment. The key itself is not affected.'}</p>
<div class="actions"><a class="button" href="/access/requests?key=${encodeURIComponent(keyPrefix(key.key))}">Its requests</a> <a class="button secondary" href="${likePath(key)}">New key like this</a>${isAlive(key) && html` <a class="button secondary" href="${path}/edit">Edit</a> <a class="button secondary danger" href="${path}/revoke">Revoke this key</a>`}</div>`
}

/** Asks once more before a key is revoked. */
export function revokePage({ key, usage }: KeyView): Html {
  return html`${wayBack}
<h1>Revoke key <code>${keyPrefix(key.key)}…</code>?</h1>
<dl class="facts">
<div><dt>Name</dt><dd><bdi>${key.name}</bdi></dd></div>
<div><dt>Last used</dt><dd>${lastUsed(usage)}</dd></div>
</dl>
<p>The API refuses the key within seconds. This cannot be undone. If a program still uses it, first <a href="${likePath(key)}">make a new key like this</a>, and give it to the program.</p>
${form({ action: `${keyPath(key)}/revoke`, submit: 'Revoke this key', isDanger: true, cancel: { href: '/access', text: 'Keep it' } })}`
}

/**
 * The answer to the form that made a key: the only page that ever shows a secret. It must not be stored anywhere. If it does not arrive,
 * the secret is lost: the person finds the key in the overview, revokes it, and makes another one.
 */
export function secretPage(made: { key: string; secret: string; name: string; apiUrl: string }): Html {
  const { key, secret, name, apiUrl } = made
  // One line for sh, PowerShell and cmd: neither key nor secret has a character that a shell reads. In Windows PowerShell 5.1, `curl`
  // is another command, and PowerShell 7 elsewhere knows no `curl.exe`.
  const curlLine = `curl -H "X-API-Key: ${key}" -H "X-API-Secret: ${secret}" "${apiUrl}/projects?limit=1"`
  return html`<h1>Your new key</h1>
<p class="lead">The key of <bdi>${name}</bdi> works now.</p>
${notice(
  html`<p><strong>Save the secret now. This page shows it once.</strong> Pledgeview keeps only a hash of it. If you lose it, create another key, and revoke this one.</p>`,
  'warning',
)}
<h2>Key and secret</h2>
<p>Key</p>
${copyable({ id: 'key', text: key, what: 'the key' })}
<p>Secret</p>
${copyable({ id: 'secret', text: secret, what: 'the secret' })}
${codeBlock({ id: 'env', caption: '.env', text: `PLEDGEVIEW_KEY=${key}\nPLEDGEVIEW_SECRET=${secret}` })}
<h2>Try it</h2>
<p class="with-script"><a class="button secondary" href="/reference#listProjects" data-take-over>Open the reference with this key</a></p>
<p>This line works at once; in Windows PowerShell write <code>curl.exe</code> instead of <code>curl</code>. Your shell may keep it in its history: take key and secret from a secret store in programs.</p>
${codeBlock({ id: 'curl', caption: 'curl', text: curlLine })}
<p><a href="/docs">How to call the API</a></p>`
}
