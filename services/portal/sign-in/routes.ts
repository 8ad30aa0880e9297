/** The ways to sign in that this portal has: by mail, through a provider, or both. */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { messageOf } from '../../runtime/message-of.ts'
import { within } from '../../runtime/within.ts'
import type { PortalDependencies } from '../app.ts'
import type { Cookies } from '../http/cookies.ts'
import { PageError } from '../http/error-pages.ts'
import { requireAccount } from '../http/session-hook.ts'
import type { Accounts } from '../ports.ts'
import { createAttempts } from './attempts.ts'
import type { FinishSignIn } from './finish.ts'
import { createMailLimits } from './mail-limits.ts'
import { addMailRoutes } from './mail-routes.ts'
import { createOidcClient } from './oidc-client.ts'
import { addOidcRoutes, callbackPath } from './oidc-routes.ts'
import type { Sessions } from './sessions.ts'

interface SignInDependencies extends PortalDependencies {
  cookies: Cookies
  finish: FinishSignIn
}

/** Adds `/sign-in` and what belongs to it. */
export function addSignInRoutes(app: FastifyInstance, dependencies: SignInDependencies): void {
  const { options } = dependencies
  const { portalUrl, portalKey, hasMail, oidc } = options
  addMailRoutes(app, {
    ...dependencies,
    attempts: createAttempts({ ...dependencies, portalKey }),
    limits: createMailLimits(dependencies.store, portalKey),
    portalUrl,
    portalKey,
    hasMail,
    hasProvider: oidc !== undefined,
  })
  if (oidc === undefined) return
  const client = createOidcClient(oidc, `${portalUrl}${callbackPath}`)
  addOidcRoutes(app, { ...dependencies, oidc: client, portalUrl, portalKey })
}

/** Signing out: this browser, or everywhere. Both are forms, because another site can make a browser open a link. */

export interface SignOutDependencies {
  accounts: Accounts
  sessions: Sessions
  cookies: Cookies
  logger: Logger
}

/** Adds `/sign-out` and `/sign-out-everywhere`. */
export function addSignOutRoutes(
  app: FastifyInstance,
  { accounts, sessions, cookies, logger }: SignOutDependencies,
): void {
  app.post('/sign-out', async (request, reply) => {
    const token = cookies.session.read(request)
    cookies.session.clear(reply)
    // The browser drops pages that it kept for the back button.
    reply.header('clear-site-data', '"cache"')
    try {
      if (token !== undefined) await within(endMsMax, sessions.end(token))
    } catch (error) {
      logger.warn(
        { requestId: request.id, error: messageOf(error) },
        'a session of the portal could not be ended',
      )
      throw new PageError(503, notEnded)
    }
    return reply.redirect('/', 303)
  })

  app.post('/sign-out-everywhere', { preHandler: requireAccount }, async (request, reply) => {
    const token = cookies.session.read(request)
    if (request.account !== undefined) await accounts.endSessions(request.account.account_id)
    if (token !== undefined) await sessions.end(token)
    cookies.session.clear(reply)
    return reply.header('clear-site-data', '"cache"').redirect('/sign-in', 303)
  })
}

const endMsMax = 2_000
const notEnded =
  'This browser is signed out: it has dropped its session. The portal could not end the session itself. If somebody else may have it, sign in later and choose "Sign out everywhere".'
