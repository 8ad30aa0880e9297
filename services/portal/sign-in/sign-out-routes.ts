/** Signing out: this browser, or everywhere. Both are forms, because another site can make a browser open a link. */
import type { FastifyInstance } from 'fastify'
import type { Cookies } from '../http/cookies.ts'
import { requireAccount } from '../http/session-hook.ts'
import type { Accounts } from '../ports.ts'
import type { Sessions } from '../sessions/sessions.ts'

export interface SignOutDependencies {
  accounts: Accounts
  sessions: Sessions
  cookies: Cookies
}

/** Adds `/sign-out` and `/sign-out-everywhere`. */
export function addSignOutRoutes(
  app: FastifyInstance,
  { accounts, sessions, cookies }: SignOutDependencies,
): void {
  app.post('/sign-out', async (request, reply) => {
    const token = cookies.session.read(request)
    if (token !== undefined) await sessions.end(token)
    cookies.session.clear(reply)
    // The browser drops pages that it kept for the back button.
    return reply.header('clear-site-data', '"cache"').redirect('/', 303)
  })

  app.post('/sign-out-everywhere', { preHandler: requireAccount }, async (request, reply) => {
    const token = cookies.session.read(request)
    if (request.account !== undefined) await accounts.endSessions(request.account.account_id)
    if (token !== undefined) await sessions.end(token)
    cookies.session.clear(reply)
    return reply.header('clear-site-data', '"cache"').redirect('/sign-in', 303)
  })
}
