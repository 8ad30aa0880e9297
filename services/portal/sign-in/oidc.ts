/**
 * Signing in through the platform's provider: OpenID Connect (authorization code with PKCE, state and nonce). What has to be kept
 * between the two steps is in a signed cookie, so the answer of the provider counts only in the browser that began, and strangers
 * can fill no store.
 */
import type { FastifyInstance } from 'fastify'
import * as client from 'openid-client'
import { z } from 'zod'
import { kept } from '../../runtime/async/kept.ts'
import { addressBucket } from '../../runtime/http/addresses.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { checkEmail } from '../account/email.ts'
import type { Portal } from '../app.ts'
import { isSame, sealOf } from '../http/cookies.ts'
import { textOf } from '../http/forms.ts'
import { countWithin, PageError } from '../http/pages.ts'
import { attemptMsMax } from './attempts.ts'
import { finishSignIn, ownPath } from './finish.ts'

export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
}

const callbackPath = '/sign-in/provider/callback'
/** Callbacks from one network. Each is a request to the provider, and the same one can come again and again. */
export const callbackBound = {
  max: 60,
  windowMs: 3_600_000,
  reason: 'Very many sign-ins came from your network within an hour. Try again in an hour.',
} as const
/** What has to be kept between the two steps. */
const keptSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  next: z.string().optional(),
  ends_at: z.number(),
})

type Kept = z.output<typeof keptSchema>

/** Adds `/sign-in/provider` and its callback, whose address has to be registered at the provider. */
export function addOidcRoutes(app: FastifyInstance, portal: Portal, settings: OidcSettings): void {
  const { cookies, options, now, logger, store } = portal
  const { portalUrl, portalKey } = options
  const redirectUri = `${portalUrl}${callbackPath}`
  // The provider is asked for its configuration at the first sign-in, and again if it did not answer.
  const configuration = kept(() => discover(settings), { ms: Infinity })

  const failed = (step: string) => (error: unknown) => {
    if (error instanceof PageError) throw error
    // What the provider answers may be caused by the person, and is no fault of ours.
    const isAnswer = error instanceof client.AuthorizationResponseError
    const fault = { error: messageOf(error), ...(isAnswer && { answer: error.error.slice(0, 100) }) }
    logger[isAnswer ? 'warn' : 'error'](fault, `a sign-in through the provider failed ${step}`)
    throw new PageError(503, 'The provider did not sign you in. Try again in a minute.')
  }

  // A GET, because the policy of forms allows no redirect to another site. It changes nothing but this browser's cookie.
  app.get('/sign-in/provider', async (request, reply) => {
    const next = ownPath(textOf(request.query, 'next'))
    const check = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      verifier: client.randomPKCECodeVerifier(),
    }
    const begun = configuration().then(config => begin(config, redirectUri, check))
    const url = await begun.catch(failed('at its beginning'))
    const kept = { ...check, next, ends_at: now() + attemptMsMax }
    cookies.provider.set(reply, sealed(portalKey, kept), attemptMsMax)
    return reply.redirect(url.href, 303)
  })

  app.get(callbackPath, async (request, reply) => {
    const kept = opened(portalKey, cookies.provider.read(request))
    // The callback of an earlier tab must not end the sign-in of the later one, whose cookie took its place.
    if (!kept || kept.ends_at <= now() || !isSame(textOf(request.query, 'state'), kept.state))
      throw new PageError(400, notBegun)
    cookies.provider.clear(reply)
    const network = sealOf(portalKey, 'limit', `callback ${addressBucket(request.ip)}`)
    await countWithin(store, `callbacks:${network}`, callbackBound)
    const finished = configuration().then(config => finish(config, new URL(request.url, portalUrl), kept))
    const email = await finished.catch(error =>
      isCancelled(error) ? undefined : failed('at its end')(error),
    )
    if (email === undefined) {
      logger.info('a sign-in was denied at the provider, by the person or by a rule')
      return reply.redirect('/sign-in', 303)
    }
    const checked = checkEmail(email)
    if ('reason' in checked) throw new PageError(403, `The address of your account ${checked.reason}.`)
    return finishSignIn(portal, request, reply, { email: checked.email, next: kept.next })
  })
}

const notBegun =
  'This sign-in did not begin in this browser, or another one began after it, or it took longer than 15 minutes. Begin again.'

function sealed(portalKey: string, kept: Kept): string {
  const text = Buffer.from(JSON.stringify(kept)).toString('base64url')
  return `${text}.${sealOf(portalKey, purpose, text)}`
}

function opened(portalKey: string, cookie = ''): Kept | undefined {
  const [text = '', seal = ''] = cookie.split('.')
  if (!isSame(seal, sealOf(portalKey, purpose, text))) return undefined
  return keptSchema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString())).data
}

const purpose = 'provider'

/** The person has said no at the provider. The library has compared the state before. */
const isCancelled = (error: unknown) =>
  error instanceof client.AuthorizationResponseError && error.error === 'access_denied'

/** The provider's address to send the browser to. */
async function begin(
  config: client.Configuration,
  redirect_uri: string,
  { state, nonce, verifier }: Pick<Kept, 'state' | 'nonce' | 'verifier'>,
): Promise<URL> {
  const code_challenge = await client.calculatePKCECodeChallenge(verifier)
  const challenge = { state, nonce, code_challenge, code_challenge_method: 'S256' }
  return client.buildAuthorizationUrl(config, { redirect_uri, scope: 'openid email', ...challenge })
}

/** The verified address of the person. Throws a page if there is none. */
async function finish(config: client.Configuration, callbackUrl: URL, kept: Kept): Promise<string> {
  const tokens = await client.authorizationCodeGrant(config, callbackUrl, {
    expectedState: kept.state,
    expectedNonce: kept.nonce,
    pkceCodeVerifier: kept.verifier,
    idTokenExpected: true,
  })
  const claims = tokens.claims()
  if (!claims) throw new PageError(403, 'The provider did not say who you are.')
  const { email, email_verified: isVerified } =
    claims.email === undefined ? await client.fetchUserInfo(config, tokens.access_token, claims.sub) : claims
  // An address that was not verified may belong to another person.
  if (typeof email !== 'string' || isVerified !== true)
    throw new PageError(403, 'Your account at the provider has no verified e-mail address.')
  return email
}

const answerSecondsMax = 10
const answerBytesMax = 1024 ** 2

function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<client.Configuration> {
  const url = new URL(issuer)
  return client.discovery(url, clientId, clientSecret, undefined, {
    timeout: answerSecondsMax,
    [client.customFetch]: boundedFetch,
    // An issuer with http is for tests and for a provider on the same machine.
    ...(url.protocol === 'http:' && { execute: [client.allowInsecureRequests] }),
  })
}

/** Fails at an answer that is larger, unpacked. The library would read whatever comes. */
async function boundedFetch(url: string, options: client.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit)
  let left = answerBytesMax
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      left -= chunk.byteLength
      if (left < 0) throw new Error(`the answer has more than ${answerBytesMax} bytes`)
      controller.enqueue(chunk)
    },
  })
  return new Response(response.body?.pipeThrough(bound) ?? null, response)
}
