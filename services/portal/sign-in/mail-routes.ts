/**
 * Signing in by mail. There is one way for people with an account and without: the account is made when the address is
 * verified. So no answer, and no time that it takes, can tell whether an address has an account.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { RandomBytes } from '../../api-keys/credentials.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { checkEmail } from '../account/email.ts'
import type { Cookies } from '../http/cookies.ts'
import { csrfField } from '../http/csrf.ts'
import { PageError } from '../http/error-pages.ts'
import { fieldOf, queryOf } from '../http/fields.ts'
import { type Mail, MailError, type Mailer } from '../ports.ts'
import { type Attempts, attemptMsMax } from './attempts.ts'
import type { FinishSignIn } from './finish.ts'
import { knownAs, type MailLimits } from './mail-limits.ts'
import { ownPath } from './own-path.ts'
import { codeView, linkView, overView, signInView } from './views.ts'

export interface MailRoutesDependencies {
  attempts: Attempts
  limits: MailLimits
  mailer: Mailer
  finish: FinishSignIn
  cookies: Cookies
  portalUrl: string
  portalKey: string
  hasMail: boolean
  hasProvider: boolean
  randomBytes: RandomBytes
  logger: Logger
}

const mailIdBytes = 12
const refusedSeconds = 600

/** Adds `/sign-in`, and with mail also `/sign-in/code` and `/sign-in/link`. */
export function addMailRoutes(app: FastifyInstance, dependencies: MailRoutesDependencies): void {
  addFirstPage(app, dependencies)
  if (!dependencies.hasMail) return
  addCodePage(app, dependencies)
  addLinkPage(app, dependencies)
}

function addFirstPage(app: FastifyInstance, dependencies: MailRoutesDependencies): void {
  const { attempts, limits, cookies, portalUrl, portalKey, hasMail, hasProvider, randomBytes } = dependencies
  const title = 'Sign in'

  function content(
    request: FastifyRequest,
    next: string | undefined,
    typed?: { email: string; fault: string },
  ) {
    return signInView({ csrf: csrfField(request), next, hasMail, hasProvider, ...typed })
  }

  app.get('/sign-in', async (request, reply) => {
    const next = ownPath(queryOf(request, 'next'))
    if (request.account !== undefined) return reply.redirect(next ?? '/access', 303)
    return reply.page({ title, path: '/sign-in', content: content(request, next) })
  })

  if (!hasMail) return
  app.post('/sign-in', async (request, reply) => {
    const next = ownPath(fieldOf(request, 'next'))
    const typed = fieldOf(request, 'email')
    const checked = checkEmail(typed)
    if ('reason' in checked) {
      const fault = `The address ${checked.reason}.`
      reply.code(400)
      return reply.page({
        title,
        path: '/sign-in',
        content: content(request, next, { email: typed.slice(0, 254), fault }),
      })
    }
    // The mail goes to the normal form, because the account belongs to it.
    const { email } = checked
    const limit = await limits.count(
      email,
      request.ip,
      knownAs(portalKey, email, cookies.known.read(request)),
    )
    if (limit === 'refused') throw new PageError(429, tooManyMails, { retryAfterSeconds: refusedSeconds })
    const isMailed = limit === 'allowed'
    const { id, code, link } = await attempts.begin({ email, next }, { isMailed })
    const mailId = Buffer.from(randomBytes(mailIdBytes)).toString('hex')
    if (isMailed) await send(dependencies, signInMail({ email, mailId, code, link, portalUrl }))
    cookies.signIn.set(reply, id, attemptMsMax)
    return reply.redirect('/sign-in/code', 303)
  })
}

function addCodePage(app: FastifyInstance, { attempts, cookies, finish }: MailRoutesDependencies): void {
  const title = 'Enter the code'
  const path = '/sign-in'

  app.get('/sign-in/code', async (request, reply) =>
    reply.page({ title, path, content: codeView({ csrf: csrfField(request) }) }),
  )

  app.post('/sign-in/code', async (request, reply) => {
    const code = fieldOf(request, 'code').replaceAll(/[\s-]/g, '').slice(0, 20)
    const signIn = await attempts.useCode(cookies.signIn.read(request), code)
    if (signIn === 'over') {
      cookies.signIn.clear(reply)
      return reply.code(410).page({ title, path, content: overView('code') })
    }
    if (signIn === 'wrong') {
      const fault =
        'The code is not right, or codes were tried too often. Look at the latest mail, or use its link.'
      return reply.code(400).page({ title, path, content: codeView({ csrf: csrfField(request), fault }) })
    }
    return finish(request, reply, signIn)
  })
}

function addLinkPage(app: FastifyInstance, { attempts, finish }: MailRoutesDependencies): void {
  const title = 'Sign in'
  const path = '/sign-in'

  // Scanners of mail servers open links. So a GET only shows a button.
  app.get('/sign-in/link', async (request, reply) => {
    const link = queryOf(request, 'token')
    const signIn = await attempts.peekLink(link)
    if (!signIn) return reply.code(410).page({ title, path, content: overView('link') })
    reply.header('cache-control', 'no-store')
    const { email } = signIn
    return reply.page({ title, path, content: linkView({ csrf: csrfField(request), email, link }) })
  })

  app.post('/sign-in/link', async (request, reply) => {
    const signIn = await attempts.useLink(fieldOf(request, 'token'))
    return signIn
      ? finish(request, reply, signIn)
      : reply.code(410).page({ title, path, content: overView('link') })
  })
}

/** An address that the server refuses gets the same answer as any other. */
async function send({ mailer, logger }: MailRoutesDependencies, mail: Mail): Promise<void> {
  try {
    await mailer.send(mail)
  } catch (error) {
    logger.error({ mail: mail.id, error: messageOf(error) }, 'a sign-in mail was not sent')
    if (error instanceof MailError && error.isRefusedAddress) return
    throw new PageError(503, 'The mail could not be sent. Try again in a minute.')
  }
}

const tooManyMails = 'Too many sign-in mails were asked for from your network. Try again in ten minutes.'

/** The mail with a sign-in link and a code. Pure. */

export interface SignInMail {
  email: string
  /** Names the attempt in the Message-ID. It is not the browser's id. */
  mailId: string
  code: string
  link: string
  portalUrl: string
}

/** The code has eight digits, in two groups of four. The link leads to a page with a button: only the button signs the person in. */
export function signInMail({ email, mailId, code, link, portalUrl }: SignInMail): Mail {
  const { host } = new URL(portalUrl)
  return {
    id: `sign-in-${mailId}`,
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
