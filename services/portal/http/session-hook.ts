/** `request.account`: who is signed in, read from the session before every handler. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { within } from '../../runtime/async/sleep.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Portal } from '../app.ts'
import type { Account } from '../ports.ts'
import { PageError } from './pages.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The account of the person who is signed in. */
    account: Account | undefined
    /** The session could not be read. Public pages are shown all the same. */
    isSessionUnknown: boolean
  }
}

/** The store and the log have longer deadlines, which a page that needs no session must not wait for. */
const sessionMsMax = 2_000

/** Reads the session of every request, except those for files. A session that is not read in time is unknown. */
export function addSessionHook(app: FastifyInstance, { sessions, cookies, logger }: Portal): void {
  app.decorateRequest('account', undefined)
  app.decorateRequest('isSessionUnknown', false)
  app.addHook('onRequest', async (request, reply) => {
    const token = cookies.session.read(request)
    if (token === undefined || request.routeOptions.url?.startsWith('/static/')) return
    try {
      request.account = await within(sessionMsMax, sessions.accountOf(token))
      if (request.account === undefined) cookies.session.clear(reply)
    } catch (error) {
      request.isSessionUnknown = true
      if (error instanceof PageError) {
        if (isWayOut(request)) return
        throw error
      }
      const about = { requestId: request.id, error: messageOf(error) }
      logger.warn(about, 'a session of the portal could not be read')
    }
  })
}

/** Pages that work without a session. A thief of one, who has used up its requests, must not keep the person from ending it. */
function isWayOut({ routeOptions: { url = '' } }: FastifyRequest): boolean {
  return url === '/sign-out' || url.startsWith('/sign-in')
}

/** A preHandler for pages of a person: without a session it leads to the sign-in page, and from there back. */
export async function requireAccount(
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  if (request.account !== undefined) return undefined
  if (request.isSessionUnknown) throw new PageError(503, sessionUnknown)
  // After a POST the person comes back to the page before: the form itself is not kept.
  const next = request.method === 'GET' ? request.url : '/access'
  return reply.redirect(`/sign-in?next=${encodeURIComponent(next)}`, 303)
}

const sessionUnknown = 'The portal cannot see now whether you are signed in. Try again in a minute.'

/** The account of a request that `requireAccount` has let pass. */
export function signedIn({ account }: FastifyRequest): Account {
  if (account === undefined) throw new PageError(403, 'You are signed out. Sign in and try again.')
  return account
}
