/** The end of every way to sign in: a new session for the account of a verified address. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomBytes } from '../../api-keys/credentials.ts'
import { AccountError } from '../account/accounts.ts'
import type { Cookies } from '../http/cookies.ts'
import { PageError } from '../http/error-pages.ts'
import type { Accounts } from '../ports.ts'
import { knownBrowser, knownMsMax } from './mail-limits.ts'
import { ownPath } from './own-path.ts'
import { type Sessions, sessionMsMax } from './sessions.ts'

export interface FinishDependencies {
  accounts: Accounts
  sessions: Sessions
  cookies: Cookies
  portalKey: string
  randomBytes: RandomBytes
}

export type FinishSignIn = (
  request: FastifyRequest,
  reply: FastifyReply,
  signIn: { email: string; next: string | undefined },
) => Promise<FastifyReply>

/** Begins a session with a new id, so nobody who knew the browser's cookies before knows it now. */
export function createFinishSignIn(dependencies: FinishDependencies): FinishSignIn {
  const { accounts, sessions, cookies, portalKey, randomBytes } = dependencies
  return async (request, reply, { email, next }) => {
    const account = await accounts.ofVerifiedEmail(email).catch((error: unknown) => {
      if (error instanceof AccountError && error.code === 'being-deleted')
        throw new PageError(503, error.message, { retryAfterSeconds: 60 })
      throw error
    })
    const former = cookies.session.read(request)
    if (former !== undefined) await sessions.end(former)
    cookies.session.set(reply, await sessions.begin(account), sessionMsMax)
    cookies.known.set(reply, knownBrowser(portalKey, account.email, randomBytes), knownMsMax)
    cookies.signIn.clear(reply)
    cookies.browser.clear(reply)
    return reply.redirect(ownPath(next) ?? '/access', 303)
  }
}
