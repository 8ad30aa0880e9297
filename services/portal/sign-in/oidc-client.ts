/**
 * OpenID Connect (authorization code with PKCE, state and nonce), for platforms that have accounts already. The provider is
 * asked for its configuration at the first sign-in, and again if it did not answer.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'

export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
}

/** What has to be kept between the two steps. It is a secret of the browser that began. */
export interface OidcCheck {
  state: string
  nonce: string
  verifier: string
}

/** The person cannot be signed in. The message is for people. */
export class OidcRefused extends Error {
  override name = 'OidcRefused'
}

const answerSecondsMax = 10

/** `redirectUri` has to be registered at the provider. */
export function createOidcClient({ issuer, clientId, clientSecret }: OidcSettings, redirectUri: string) {
  let found: Promise<Configuration> | undefined

  function configuration(): Promise<Configuration> {
    const url = new URL(issuer)
    found ??= discovery(url, clientId, clientSecret, undefined, {
      timeout: answerSecondsMax,
      // An issuer with http is for tests and for a provider on the same machine.
      ...(url.protocol === 'http:' && { execute: [allowInsecureRequests] }),
    }).catch(error => {
      found = undefined
      throw error
    })
    return found
  }

  return {
    /** The provider's address to send the browser to. */
    async begin(): Promise<{ url: string; check: OidcCheck }> {
      const check = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() }
      const url = buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: 'openid email',
        state: check.state,
        nonce: check.nonce,
        code_challenge: await calculatePKCECodeChallenge(check.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, check }
    },

    /** The verified address of the person. Throws `OidcRefused` if there is none. */
    async finish(callbackUrl: URL, { state, nonce, verifier }: OidcCheck): Promise<string> {
      const config = await configuration()
      const tokens = await authorizationCodeGrant(config, callbackUrl, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (!claims) throw new OidcRefused('The provider did not say who you are.')
      const { email, email_verified: isVerified } =
        claims.email === undefined ? await fetchUserInfo(config, tokens.access_token, claims.sub) : claims
      // An address that was not verified may belong to another person.
      if (typeof email !== 'string' || isVerified !== true)
        throw new OidcRefused('Your account at the provider has no verified e-mail address.')
      return email
    },
  }
}
