/**
 * Signing in through the platform's provider. What has to be kept between the two steps is in a signed cookie, so the answer
 * of the provider counts only in the browser that began, and strangers can fill no store.
 */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { z } from 'zod'
import { messageOf } from '../../runtime/message-of.ts'
import { checkEmail } from '../account/email.ts'
import type { Cookies } from '../http/cookies.ts'
import { isSame, sealOf } from '../http/cookies.ts'
import { PageError } from '../http/error-pages.ts'
import { queryOf } from '../http/fields.ts'
import { attemptMsMax } from './attempts.ts'
import type { FinishSignIn } from './finish.ts'
import { type OidcClient, OidcRefused } from './oidc-client.ts'
import { ownPath } from './own-path.ts'

export interface OidcRoutesDependencies {
  oidc: OidcClient
  finish: FinishSignIn
  cookies: Cookies
  portalUrl: string
  portalKey: string
  now: () => number
  logger: Logger
}

export const callbackPath = '/sign-in/provider/callback'

const keptSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string().optional(),
  ends_at: z.number(),
})

type Kept = z.output<typeof keptSchema>

/** Adds `/sign-in/provider` and its callback. */
export function addOidcRoutes(app: FastifyInstance, dependencies: OidcRoutesDependencies): void {
  const { oidc, finish, cookies, portalUrl, portalKey, now, logger } = dependencies

  function failed(error: unknown, step: string): PageError {
    if (error instanceof OidcRefused) return new PageError(403, error.message)
    logger.error({ error: messageOf(error) }, `a sign-in through the provider failed ${step}`)
    return new PageError(503, 'The provider did not sign you in. Try again in a minute.')
  }

  // A GET, because the policy of forms allows no redirect to another site. It changes nothing but this browser's cookie.
  app.get('/sign-in/provider', async (request, reply) => {
    const next = ownPath(queryOf(request, 'next'))
    const { url, check } = await oidc.begin().catch(error => {
      throw failed(error, 'at its beginning')
    })
    const kept = { ...check, ...(next !== undefined && { next }), ends_at: now() + attemptMsMax }
    cookies.provider.set(reply, sealed(portalKey, kept), attemptMsMax)
    return reply.redirect(url, 303)
  })

  app.get(callbackPath, async (request, reply) => {
    const kept = opened(portalKey, cookies.provider.read(request))
    cookies.provider.clear(reply)
    if (!kept || kept.ends_at <= now()) throw new PageError(400, notBegun)
    const callback = new URL(request.url, portalUrl)
    const email = await oidc.finish(callback, kept).catch(error => {
      throw failed(error, 'at its end')
    })
    const checked = checkEmail(email)
    if ('reason' in checked) throw new PageError(403, `The address of your account ${checked.reason}.`)
    return finish(request, reply, { email: checked.email, next: kept.next })
  })
}

function sealed(portalKey: string, kept: Kept): string {
  const text = Buffer.from(JSON.stringify(kept)).toString('base64url')
  return `${text}.${sealOf(portalKey, purpose, text)}`
}

function opened(portalKey: string, cookie: string | undefined): Kept | undefined {
  const [text = '', seal = ''] = (cookie ?? '').split('.')
  if (!isSame(seal, sealOf(portalKey, purpose, text))) return undefined
  return keptSchema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data
}

const purpose = 'provider'

const notBegun = 'This sign-in did not begin in this browser, or it took longer than 15 minutes. Begin again.'
