/**
 * Admission: reads the credentials of a request, verifies them, and checks its rate limit.
 *
 * Every request is counted exactly once. If its credentials are valid, it counts against the bucket of its key,
 * whatever its response is. Otherwise it counts against the bucket of its address. Credentials are checked first, so a
 * flood of requests with bad credentials never blocks a good request from the same address. A preflight has no
 * credentials, so it counts against a bucket of its address that only preflights have: otherwise such a flood would block
 * the preflights of good requests.
 */

import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Credentials, noSecretHash, verifySecret } from '../../api-keys/credentials.ts'
import { addressBucket } from '../../runtime/http/addresses.ts'
import { countOfHeader } from '../../runtime/http/request-headers.ts'
import type { ApiKey, KeyRing } from '../auth/key-ring.ts'
import type { RateDecision, RateLimiters } from '../rate-limit/rate-limiter.ts'

/** The headers of a request: merged by Node, and as they arrived. */
type PresentedHeaders = Pick<IncomingMessage, 'headers' | 'rawHeaders'>

export interface Admission {
  /** The key, if the credentials are valid. */
  apiKey: ApiKey | undefined
  /** The key that the request names, if it is active. It is set even if the secret was wrong. */
  namedKey: ApiKey | undefined
  decision: RateDecision
}

export type Admissions = ReturnType<typeof createAdmissions>

/** Creates the admissions of one process. */
export function createAdmissions(keyRing: Pick<KeyRing, 'lookup'>, limiters: RateLimiters, pepper: string) {
  const verify = createSecretVerifier(pepper)

  async function admitStranger(bucket: string, namedKey?: ApiKey): Promise<Admission> {
    return { apiKey: undefined, namedKey, decision: await limiters.addresses.hit(bucket) }
  }

  return {
    /** The key of the request, if its secret has just been verified. Throws if the keys are not known. */
    verifiedKey(request: PresentedHeaders): ApiKey | undefined {
      const { key, secret } = presentedCredentials(request)
      const known = keyRing.lookup(key)
      return verify.remembers(known, secret) ? known : undefined
    },

    /**
     * Counts a request of this key, if that can be decided at once and its window has room. Otherwise it returns undefined,
     * and nothing is counted.
     */
    admitNow(apiKey: ApiKey): Admission | undefined {
      const decision = limiters.keys.hitNow?.(apiKey.key)
      return decision?.allowed ? { apiKey, namedKey: apiKey, decision } : undefined
    },

    /** Counts a request. Rejects if the keys are not known, and if the limiter fails. */
    async admit(request: PresentedHeaders, address: string | undefined): Promise<Admission> {
      const { key, secret } = presentedCredentials(request)
      const known = keyRing.lookup(key)
      // The same steps even if the key is unknown: the time of a refusal must not reveal which keys exist.
      const isValid = verify(known, secret)
      if (known === undefined || !isValid) return admitStranger(addressBucket(address), known)
      return { apiKey: known, namedKey: known, decision: await limiters.keys.hit(key) }
    },

    /** Counts something that is not a readable request, against the bucket of its address. Fails like `admit`. */
    admitAddress: (address: string | undefined) => admitStranger(addressBucket(address)),

    /** Counts a preflight, against the bucket of its address for preflights. Fails like `admit`. */
    admitPreflight: (address: string | undefined) => admitStranger(`preflights of ${addressBucket(address)}`),

    /** The result to use if no limiter could be asked: no requests remain, and the limit resets at the next second. */
    unknown(): Admission {
      const decision = { ...limiters.addresses.settings, allowed: false, remaining: 0, delayMs: 1 }
      return { apiKey: undefined, namedKey: undefined, decision }
    },
  }
}

/* Credentials. They come from the headers, and only from there. */

/**
 * The credentials. They are empty if they are missing or incomplete. There are two forms: two headers (`X-API-Key` and
 * `X-API-Secret`), or one (`Authorization: Bearer <key>:<secret>`). If a request uses both forms, they must be equal: a
 * request with two identities gets neither. The same holds for a header that is sent twice. Other schemes of
 * `Authorization` are ignored, because they may be meant for a proxy.
 */
function presentedCredentials({ headers, rawHeaders }: PresentedHeaders): Credentials {
  const pair = fromPair(headers['x-api-key'], headers['x-api-secret'])
  // Node keeps the first of two `Authorization` headers, but a proxy in front of the service may have trusted the second.
  // Node joins repeated headers of the other form with a comma, and no key contains a comma.
  const isGivenTwice = countOfHeader(rawHeaders, 'authorization') > 1
  const bearer = isGivenTwice ? incomplete : fromBearer(headers.authorization)
  if (pair === undefined || bearer === undefined) return pair ?? bearer ?? incomplete
  return pair.key === bearer.key && pair.secret === bearer.secret ? pair : incomplete
}

// A half-complete form counts as empty credentials, not as none, so that the other form cannot complete it.
const incomplete: Credentials = { key: '', secret: '' }

function fromPair(
  key: string | string[] | undefined,
  secret: string | string[] | undefined,
): Credentials | undefined {
  if (key === undefined && secret === undefined) return undefined
  return typeof key === 'string' && typeof secret === 'string' ? { key, secret } : incomplete
}

function fromBearer(authorization: string | undefined): Credentials | undefined {
  const token = /^bearer +(\S.*)$/i.exec(authorization ?? '')?.[1]
  if (token === undefined) return /^bearer *$/i.test(authorization ?? '') ? incomplete : undefined
  // A key contains no colon but a secret may, so the first colon separates them.
  const colon = token.indexOf(':')
  return colon < 0 ? incomplete : { key: token.slice(0, colon), secret: token.slice(colon + 1) }
}

/*
 * Verifies secrets, and remembers the correct one: a client sends the same secret with every request, and even a plain hash
 * of it costs a tenth of a cached response.
 *
 * A remembered secret belongs to one loaded state of a key and is dropped with it: when the key is revoked, and whenever
 * it is loaded again, which the key ring does about every minute. Only a request with the correct secret
 * is answered faster, so the time of a refusal still does not reveal which keys exist.
 */

// What an unknown key is compared with: shaped like a known key, and made once.
const unknownKey: ApiKey = { key: '', secretHash: noSecretHash, scopes: [] }

// A comparison in constant time needs equal lengths, so a secret is compared as a frame: its bytes, zeros, and its length
// in the last byte. Only plain ASCII that fits is remembered, because there one character is one byte. Ours are shorter.
const frameBytes = 128
const secretLengthMax = frameBytes - 1
const unframed = 255

/**
 * Creates a verifier for secrets that were hashed with this pepper. If the key is `undefined`, both functions do the same work as for a
 * wrong secret, and return false.
 */
export function createSecretVerifier(pepper: string) {
  const rightSecrets = new WeakMap<ApiKey, Buffer>()
  const noSecret = Buffer.alloc(frameBytes, unframed)
  const presented = Buffer.alloc(frameBytes)

  /** Writes the secret into `presented`. Returns whether it could be remembered. */
  function frame(secret: string): boolean {
    presented.fill(0)
    // Not the number of bytes that `write` returns: of a longer text it may be that of a part.
    const isFramed = secret.length <= secretLengthMax && Buffer.byteLength(secret) === secret.length
    presented.write(secret, 0, secretLengthMax)
    presented[secretLengthMax] = isFramed ? secret.length : unframed
    return isFramed
  }

  /** Whether this secret of this key has been verified and is remembered. */
  function remembers(known: ApiKey = unknownKey, secret: string): boolean {
    const isFramed = frame(secret)
    const right = rightSecrets.get(known) ?? noSecret
    return timingSafeEqual(presented, right) && isFramed && right !== noSecret
  }

  /** Whether the secret belongs to the key. */
  function verify(known: ApiKey = unknownKey, secret: string): boolean {
    if (remembers(known, secret)) return true
    const isValid = verifySecret(pepper, secret, known.secretHash)
    // `presented` still holds this secret.
    if (isValid && presented[secretLengthMax] !== unframed) {
      rightSecrets.set(known, Buffer.alloc(frameBytes, presented))
    }
    return isValid
  }

  return Object.assign(verify, { remembers })
}
