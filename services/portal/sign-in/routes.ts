/** The ways to sign in that this portal has: by mail, through a provider, or both. */
import type { FastifyInstance } from 'fastify'
import type { PortalDependencies } from '../app.ts'
import type { Cookies } from '../http/cookies.ts'
import { createAttempts } from './attempts.ts'
import type { FinishSignIn } from './finish.ts'
import { createMailLimits } from './mail-limits.ts'
import { addMailRoutes } from './mail-routes.ts'
import { createOidcClient } from './oidc-client.ts'
import { addOidcRoutes, callbackPath } from './oidc-routes.ts'

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
