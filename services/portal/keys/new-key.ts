/**
 * Makes a key once per form, and answers with the page that shows its secret. If the page does not arrive, the secret is lost:
 * the person finds the key in the overview, revokes it, and makes another one.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { KeyError } from '../../api-keys/api-keys.ts'
import { keyPrefix } from '../../api-keys/credentials.ts'
import type { Portal } from '../app.ts'
import { type Html, html } from '../html/html.ts'
import { codeBlock, copyable, notice } from '../html/parts.ts'
import { randomText } from '../http/cookies.ts'
import { textOf } from '../http/forms.ts'
import { PageError } from '../http/pages.ts'
import { signedIn } from '../http/session-hook.ts'
import { countFor, notify, sendPage } from './access.ts'
import type { KeyFields } from './key-fields.ts'

/**
 * Makes a key unless this form was used before, and answers with it. A key that lands behind the deletion of its account is deleted,
 * too, before anybody sees it.
 */
export async function answerWithNewKey(
  portal: Portal,
  request: FastifyRequest,
  reply: FastifyReply,
  fields: KeyFields,
  livesMs: number | undefined,
): Promise<FastifyReply> {
  const account = signedIn(request)
  await countFor(portal, account, 'newKeys')
  const token = textOf(request.body, 'token')
  if (!tokenPattern.test(token)) throw new PageError(400, 'This form is not whole. Open the page again.')
  const isFirst = await portal.store.claim(`form/${account.account_id}/${token}`, '', rememberedMs)
  if (!isFirst) throw new KeyError(usedReason)
  const made = await portal.keys.issue(account.account_id, fields, livesMs)
  notify(portal, notices => notices.created(account, fields, keyPrefix(made.key)))
  if (!(await portal.accounts.find(account.account_id))) {
    await portal.keys.deleteAll(account.account_id)
    throw new PageError(403, deletedReason)
  }
  const shown = { ...made, name: fields.name, apiUrl: portal.options.apiUrl }
  return sendPage(reply, 'Your new key', secretPage(shown))
}

/*
 * A form must not act twice: a double click, a reload of the answer, a page that was gone back to. So it carries a random token, and
 * acts once within a day, in whatever portal process. A double click is sent once, where scripts run (static/portal.js). Elsewhere
 * the browser may show only the second answer: the secret is lost, and the answer says what to do.
 *
 * The token is no protection against other sites: the check of the origin is. What a form costs is bounded before its token is looked
 * at, so made-up tokens fill no store.
 */

const rememberedMs = 24 * 3_600_000
const tokenPattern = /^[\w-]{22}$/

/** A token for one form. */
export function newFormToken(): string {
  return randomText(16)
}

const deletedReason = 'This account was deleted meanwhile, and the new key with it.'
const usedReason =
  'This form was sent before, so nothing was done now. If it created a key whose secret you did not see, revoke that key, and create another one.'

/** The answer to the form that made a key: the only page that ever shows a secret. It must not be stored anywhere. */
export function secretPage(made: { key: string; secret: string; name: string; apiUrl: string }): Html {
  const { key, secret, name, apiUrl } = made
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
${codeBlock({ id: 'curl', caption: 'curl', text: curlLine(apiUrl, key, secret) })}
<p><a href="/docs">How to call the API</a></p>`
}

/**
 * One line for sh, PowerShell and cmd: neither key nor secret has a character that a shell reads. In Windows PowerShell 5.1, `curl`
 * is another command, and PowerShell 7 elsewhere knows no `curl.exe`.
 */
function curlLine(apiUrl: string, key: string, secret: string): string {
  return `curl -H "X-API-Key: ${key}" -H "X-API-Secret: ${secret}" "${apiUrl}/projects?limit=1"`
}
