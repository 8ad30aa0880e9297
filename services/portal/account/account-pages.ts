/** The page of the account: who is signed in, sign-out everywhere, deletion. */
import type { FastifyInstance } from 'fastify'
import { messageOf } from '../../runtime/message-of.ts'
import { TablesError } from '../../tables/port.ts'
import type { Portal } from '../app.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { date } from '../html/words.ts'
import { PageError } from '../http/pages.ts'
import { requireAccount, signedIn } from '../http/session-hook.ts'
import { isAlive } from '../keys/portal-keys.ts'
import type { Account } from '../ports.ts'

/** Adds `/account`, `/account/delete` and `/account/deleted`. */
export function addAccountPages(app: FastifyInstance, portal: Portal): void {
  const { accounts, keys, cookies, logger } = portal
  const ofAccount = { preHandler: requireAccount }
  const path = '/account'

  app.get('/account', ofAccount, async (request, reply) =>
    reply.page({ title: 'Account', path, content: accountView(signedIn(request)) }),
  )

  app.get('/account/delete', ofAccount, async (request, reply) => {
    const account = signedIn(request)
    const alive = (await keys.ofAccount(account.account_id)).filter(isAlive)
    const content = deleteView(account, alive.length)
    return reply.page({ title: 'Delete the account', path, content })
  })

  app.post('/account/delete', ofAccount, async (request, reply) => {
    const account = signedIn(request)
    await accounts.delete(account.account_id).catch((error: unknown) => {
      // Of the tables, only the read before the deletion fails.
      if (error instanceof TablesError) throw error
      logger.error(
        { requestId: request.id, error: messageOf(error) },
        'a deletion of an account may land later',
      )
      throw new PageError(503, askedReason)
    })
    // From here on the account is gone, and its sessions with it. To report a failure would lead to a second try, and that to a
    // new account. A round completes the rest (accounts.ts).
    await keys
      .deleteAll(account.account_id)
      .catch((error: unknown) =>
        logger.warn({ error: messageOf(error) }, 'what belongs to a deleted account is not gone yet'),
      )
    cookies.session.clear(reply)
    cookies.known.clear(reply)
    return reply.header('clear-site-data', '"cache"').redirect('/account/deleted', 303)
  })

  app.get('/account/deleted', async (_request, reply) =>
    reply.page({ title: 'Account deleted', path, content: deletedView }),
  )
}

// "Try again" would lead to the sign-in page once it has landed, and from there to a new account.
const askedReason =
  'The deletion is asked for, and may be done in a moment. If this page then asks you to sign in, the account is gone: do not sign in, that would make a new one. If you are still signed in after a minute, delete it once more.'

function accountView({ email, created_at }: Account): Html {
  return html`<h1>Account</h1>
<dl class="facts">
<div><dt>E-mail address</dt><dd>${email}</dd></div>
<div><dt>Created</dt><dd>${date(created_at)}</dd></div>
</dl>
<p>Your keys are under <a href="/access">API access</a>.</p>
<section>
<h2>Sessions</h2>
<p>A session ends seven days after its last use, and at the latest after 30 days. Did you lose a device? End all sessions, this one too.</p>
${form({ action: '/sign-out-everywhere', submit: 'Sign out everywhere' })}
</section>
<section>
<h2>Delete the account</h2>
<p>Your keys stop working, and every address is deleted, also those of their contacts.</p>
<p><a class="button secondary danger" href="/account/delete">Delete the account</a></p>
</section>`
}

function deleteView({ email }: Account, aliveKeys: number): Html {
  const keys = aliveKeys === 1 ? 'one key' : `${aliveKeys} keys`
  return html`<h1>Delete the account?</h1>
<p>The account of <strong>${email}</strong> is deleted for good${aliveKeys > 0 && html`, with <strong>${keys}</strong>: what calls the API with them is refused within seconds`}. This cannot be undone.</p>
${form({
  action: '/account/delete',
  submit: 'Delete the account',
  isDanger: true,
  isSentOnce: true,
  cancel: { href: '/account', text: 'Keep it' },
})}`
}

const deletedView = html`<h1>The account is deleted</h1>
<p>Its keys stop working, and you are signed out everywhere.</p>
<p><a href="/">To the first page</a></p>`
