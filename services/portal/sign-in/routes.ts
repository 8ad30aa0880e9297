/** Signing in, by mail, through a provider, or both; and signing out, in this browser or everywhere. */
import type { FastifyInstance } from 'fastify'
import { within } from '../../runtime/async/sleep.ts'
import { messageOf } from '../../runtime/message-of.ts'
import type { Portal } from '../app.ts'
import { PageError } from '../http/pages.ts'
import { requireAccount, signedIn } from '../http/session-hook.ts'
import { addMailRoutes, addSignInPage } from './mail-routes.ts'
import { addOidcRoutes } from './oidc.ts'

export function addSignInRoutes(app: FastifyInstance, portal: Portal): void {
  addSignInPage(app, portal)
  if (portal.mailer) addMailRoutes(app, portal)
  if (portal.options.oidc) addOidcRoutes(app, portal, portal.options.oidc)
}

/** Both are forms, because another site can make a browser open a link. */
export function addSignOutRoutes(app: FastifyInstance, portal: Portal): void {
  const { accounts, sessions, cookies, logger } = portal

  app.post('/sign-out', async (request, reply) => {
    const token = cookies.session.read(request)
    cookies.session.clear(reply)
    // The page of an error says so, too.
    request.account = undefined
    // The browser drops pages that it kept for the back button.
    reply.header('clear-site-data', '"cache"')
    try {
      if (token !== undefined) await within(endMsMax, sessions.end(token))
    } catch (error) {
      const about = { requestId: request.id, error: messageOf(error) }
      logger.warn(about, 'a session of the portal could not be ended')
      throw new PageError(503, notEnded)
    }
    return reply.redirect('/', 303)
  })

  app.post('/sign-out-everywhere', { preHandler: requireAccount }, async (request, reply) => {
    await accounts.endSessions(signedIn(request).account_id)
    cookies.session.clear(reply)
    return reply.header('clear-site-data', '"cache"').redirect('/sign-in', 303)
  })
}

const endMsMax = 2_000
const notEnded =
  'This browser is signed out: it has dropped its session. The portal could not end the session itself. If somebody else may have it, sign in later and choose "Sign out everywhere".'
