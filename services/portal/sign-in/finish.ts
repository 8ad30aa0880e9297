/** The end of every way to sign in: a new session for the account of a verified address. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Portal } from '../app.ts'
import type { SignIn } from './attempts.ts'
import { knownBrowser, knownMsMax } from './mail-limits.ts'
import { sessionMsMax } from './sessions.ts'

/** Begins a session with a new id, so nobody who knew the browser's cookies before knows it now. */
export async function finishSignIn(
  { accounts, sessions, cookies, options }: Portal,
  request: FastifyRequest,
  reply: FastifyReply,
  { email, next }: SignIn,
): Promise<FastifyReply> {
  const account = await accounts.ofVerifiedEmail(email)
  const former = cookies.session.read(request)
  if (former !== undefined) await sessions.end(former)
  cookies.session.set(reply, await sessions.begin(account), sessionMsMax)
  cookies.known.set(reply, knownBrowser(options.portalKey, account.email), knownMsMax)
  cookies.signIn.clear(reply)
  return reply.redirect(ownPath(next) ?? '/access', 303)
}

/**
 * The path, if it is one of this portal; otherwise `undefined`. A link to the sign-in page must not lead people to another
 * site. A browser reads `\` as `/` and drops tabs and line ends, so `/\x` and `/<tab>/x` would be other hosts.
 */
export function ownPath(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > lengthMax || !pathPattern.test(text)) return undefined
  const url = new URL(text, base)
  // The resolved path is what a browser gets. `/.//x` resolves to `//x`, which would be another host.
  const path = `${url.pathname}${url.search}`
  return url.origin === base && !path.startsWith('//') ? path : undefined
}

const lengthMax = 1_024
const base = 'http://portal.invalid'
// Printable ASCII without the backslash: what a browser sends as a path, which begins with one slash.
const pathPattern = /^\/(?!\/)[!-[\]-~]*$/
