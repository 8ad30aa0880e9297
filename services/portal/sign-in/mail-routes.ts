/**
 * Signing in by mail. There is one way for people with an account and without: the account is made when the address is
 * verified. So no answer, and no time that it takes, can tell whether an address has an account.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { messageOf } from '../../runtime/message-of.ts'
import { checkEmail, emailLengthMax } from '../account/email.ts'
import type { Portal } from '../app.ts'
import { form } from '../html/form.ts'
import { type Html, html } from '../html/html.ts'
import { randomText } from '../http/cookies.ts'
import { textOf } from '../http/forms.ts'
import { PageError } from '../http/pages.ts'
import { type Mail, MailError } from '../ports.ts'
import { attemptMsMax, createAttempts } from './attempts.ts'
import { finishSignIn, ownPath } from './finish.ts'
import { countMail } from './mail-limits.ts'

const path = '/sign-in'

/** Adds the page on which a sign-in begins, with the ways that there are. */
export function addSignInPage(app: FastifyInstance, portal: Portal): void {
  app.get(path, async (request, reply) => {
    const next = ownPath(textOf(request.query, 'next'))
    if (request.account !== undefined) return reply.redirect(next ?? '/access', 303)
    return reply.page({ title: 'Sign in', path, content: signInView(portal, next) })
  })
}

/** Adds the form that asks for a mail, `/sign-in/code` and `/sign-in/link`. */
export function addMailRoutes(app: FastifyInstance, portal: Portal): void {
  const { options, cookies, store, accounts, now } = portal
  const attempts = createAttempts(store, accounts, options.portalKey, now)

  app.post(path, async (request, reply) => {
    const next = ownPath(textOf(request.body, 'next'))
    const typed = textOf(request.body, 'email')
    const checked = checkEmail(typed)
    if ('reason' in checked) {
      const fault = { email: typed.slice(0, emailLengthMax), fault: `The address ${checked.reason}.` }
      const content = signInView(portal, next, fault)
      return reply.code(400).header('cache-control', 'no-store').page({ title: 'Sign in', path, content })
    }
    // The mail goes to the normal form, because the account belongs to it.
    const { email } = checked
    const isMailed = await countMail(portal, request, email)
    const { id, code, link } = await attempts.begin({ email, next }, { isMailed })
    // Before the mail: one that is given up may come late, and its code works here then.
    cookies.signIn.set(reply, id, attemptMsMax)
    if (isMailed) await send(portal, signInMail(options.portalUrl, email, code, link))
    return reply.redirect('/sign-in/code', 303)
  })

  const sendCodePage = async (request: FastifyRequest, reply: FastifyReply, fault?: string) => {
    // Without the store the page is still shown.
    const email = await attempts.emailOf(cookies.signIn.read(request)).catch(() => undefined)
    const mailsAre = portal.mailer?.mailsAre
    const content = codeView({ email, mailsAre, fault })
    return reply.header('cache-control', 'no-store').page({ title: 'Enter the code', path, content })
  }

  app.get('/sign-in/code', async (request, reply) => {
    if (request.account !== undefined) return reply.redirect('/access', 303)
    // No mail was asked for in this browser, or too long ago.
    if (cookies.signIn.read(request) === undefined) return reply.redirect(path, 303)
    return sendCodePage(request, reply)
  })

  app.post('/sign-in/code', async (request, reply) => {
    const signIn = await attempts.useCode(cookies.signIn.read(request), codeOf(textOf(request.body, 'code')))
    if (signIn === 'over') {
      if (request.account !== undefined) return reply.redirect('/access', 303)
      cookies.signIn.clear(reply)
      return reply.code(410).page({ title: 'Enter the code', path, content: overView('code') })
    }
    if (signIn !== 'wrong') return finishSignIn(portal, request, reply, signIn)
    return sendCodePage(request, reply.code(400), wrongCode)
  })

  // Scanners of mail servers open links. So a GET only shows a button.
  app.get('/sign-in/link', async (request, reply) => {
    const link = textOf(request.query, 'token')
    const email = await attempts.emailOfLink(link)
    if (email === undefined)
      return reply.code(410).page({ title: 'Sign in', path, content: overView('link') })
    const content = linkView({ email, link })
    return reply.header('cache-control', 'no-store').page({ title: 'Sign in', path, content })
  })

  app.post('/sign-in/link', async (request, reply) => {
    const signIn = await attempts.useLink(textOf(request.body, 'token'))
    if (signIn) return finishSignIn(portal, request, reply, signIn)
    // The form was sent twice.
    if (request.account !== undefined) return reply.redirect('/access', 303)
    return reply.code(410).page({ title: 'Sign in', path, content: overView('link') })
  })
}

/** The code that was typed or pasted: without spaces and invisible characters, and with the digits of Arabic and Persian keypads as ASCII. */
function codeOf(text: string): string {
  const digits = text.replaceAll(/[\u0660-\u0669\u06f0-\u06f9]/g, digit => String(digit.charCodeAt(0) & 15))
  return digits.replaceAll(/[\s\p{Cf}-]/gu, '').slice(0, 20)
}

/** An address that the server refuses gets the same answer as any other. */
async function send({ mailer, logger }: Portal, mail: Mail): Promise<void> {
  try {
    await mailer?.send(mail)
  } catch (error) {
    logger.error({ mail: mail.id, error: messageOf(error) }, 'a sign-in mail was not sent')
    if (error instanceof MailError && error.isRefusedAddress) return
    throw new PageError(503, notSent)
  }
}

const notSent =
  'The mail could not be sent. Try again in a minute. If it comes late, its link works, and in this browser its code, too, on the page /sign-in/code.'
const wrongCode =
  'The code is not right, or codes were tried too often. Look at the latest mail, or use its link.'

/**
 * The mail. The code has eight digits, in two groups of four. The link leads to a page with a button: only the button signs the person
 * in. The Message-ID is not the browser's id.
 */
function signInMail(portalUrl: string, email: string, code: string, link: string): Mail {
  const { host } = new URL(portalUrl)
  return {
    id: `sign-in-${randomText(12)}`,
    to: email,
    subject: `Sign in to Pledgeview (${host})`,
    text: `Someone asked to sign in to Pledgeview at ${host} with this address.

Enter this code in the window where you asked:

    ${code.slice(0, 4)} ${code.slice(4)}

Or open this link, and press the button there:

    ${portalUrl}/sign-in/link?token=${link}

Both work once, within 15 minutes. If it was not you, do nothing: without this mail there is no sign-in. Do not give the code to anyone.
`,
  }
}

/* The pages, as functions of what they show. Pure. */

/** The first page: an address, or the provider. `typed`: what the person typed, if it was wrong. */
function signInView(
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
    fields: [{ ...field, lengthMax: emailLengthMax, autocomplete: 'email' }],
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
function codeView({
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

/** Where the link of a mail leads. To open the page does not spend the link: only the button does. */
function linkView({ email, link }: { email: string; link: string }): Html {
  return html`<h1>Sign in</h1>
<p>Sign in to Pledgeview in this browser as <strong>${email}</strong>?</p>
${form({ action: '/sign-in/link', hidden: { token: link }, submit: 'Sign in', isSentOnce: true })}`
}

/** A link or a code that is no good any more. */
function overView(what: 'link' | 'code'): Html {
  return html`<h1>This ${what} is over</h1>
<p>It was used already, it is older than 15 minutes, or it was tried too often.${what === 'code' && html` After too many tries the link in the same mail still works.`}</p>
<p><a class="button" href="/sign-in">Ask for a new one</a></p>`
}
