/** The pages of signing in, as functions of what they show. Pure. */
import type { Portal } from '../app.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'

/** The first page: an address, or the provider. `typed`: what the person typed, if it was wrong. */
export function signInView(
  { mailer, options: { oidc } }: Portal,
  next: string | undefined,
  { email, fault }: { email: string; fault?: string } = { email: '' },
): Html {
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`
  const field = { name: 'email', label: 'E-mail address', type: 'email', value: email, fault } as const
  return html`<h1>Sign in</h1>
${
  mailer || oidc
    ? html`<p>There is no password. If you have no account yet, signing in creates a free one.</p>`
    : html`<p>Signing in is not set up here yet. Ask the operator of this service for a key.</p>`
}
${oidc && html`<p><a class="button" href="/sign-in/provider${query}">Sign in with your platform account</a></p>`}
${
  mailer &&
  form({
    action: '/sign-in',
    hidden: { next },
    fields: [{ ...field, lengthMax: 254, autocomplete: 'email' }],
    submit: 'Send me a code and a link',
    isSentOnce: true,
  })
}
${mailer?.mailsAre && html`<p>${mailer.mailsAre}</p>`}`
}

/**
 * Asks for the mailed code. It says the same for every address. `email`: the one that was typed in this browser, if its sign-in is not
 * over. `mailsAre`: where mails are if there is no mail server.
 */
export function codeView({
  email,
  mailsAre,
  fault,
}: Record<'email' | 'mailsAre' | 'fault', string | undefined>): Html {
  const code = { name: 'code', label: 'Code', type: 'text', placeholder: '1234 5678', fault } as const
  return html`<h1>Check your inbox</h1>
<p>We sent a code and a link to ${email === undefined ? 'the address that you typed' : html`<strong>${email}</strong>`}. Both work once, within 15 minutes.</p>
${mailsAre && html`<p>${mailsAre}</p>`}
${form({
  action: '/sign-in/code',
  fields: [{ ...code, lengthMax: 20, autocomplete: 'one-time-code', inputmode: 'numeric' }],
  submit: 'Sign in',
  isSentOnce: true,
})}
<p>${mailsAre ? '' : 'No mail? Look in the spam folder. '}An address gets a few mails an hour at most; those that could not be sent count, too. <a href="/sign-in">Type the address again</a></p>`
}

/** Where the link of a mail leads. Only the button uses the link up. */
export function linkView({ email, link }: { email: string; link: string }): Html {
  return html`<h1>Sign in</h1>
<p>Sign in to Pledgeview in this browser as <strong>${email}</strong>?</p>
${form({ action: '/sign-in/link', hidden: { token: link }, submit: 'Sign in', isSentOnce: true })}`
}

/** A link or a code that is no good any more. */
export function overView(what: 'link' | 'code'): Html {
  return html`<h1>This ${what} is over</h1>
<p>It was used already, it is older than 15 minutes, or it was tried too often.${what === 'code' && html` After too many tries the link in the same mail still works.`}</p>
<p><a class="button" href="/sign-in">Ask for a new one</a></p>`
}
