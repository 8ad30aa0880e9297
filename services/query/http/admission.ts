/**
 * Admission: identifies the key of a request, and checks its rate limit.
 *
 * Every request is counted exactly once. If its credentials are valid, it counts against the bucket of its key,
 * whatever its response is. Otherwise it counts against the bucket of its address. Credentials are checked first, so a
 * flood of requests with bad credentials never blocks a good request from the same address. A preflight has no
 * credentials, so it counts against a bucket of its address that only preflights have: otherwise such a flood would block
 * the preflights of good requests.
 */

import { keyPrefix } from '../../api-keys/credentials.ts'
import { addressBucket } from '../../runtime/http/addresses.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { ApiKey, KeyRing } from '../auth/key-ring.ts'
import {
  createSecretVerifier,
  type PresentedHeaders,
  presentedCredentials,
} from '../auth/presented-credentials.ts'
import { type MaybePromise, use } from '../maybe-promise.ts'
import type { RateDecision, RateLimiters } from '../rate-limit/rate-limiter.ts'

export interface Admission {
  /** The key, if the credentials are valid. */
  apiKey: ApiKey | undefined
  /** The key that the request names, if it is active. It is set even if the secret was wrong. */
  namedKey: ApiKey | undefined
  /** The prefix of that key. */
  keyPrefix: string | undefined
  decision: RateDecision
  /** The window of the limiter that decided. */
  windowMs: number
}

export interface Requester {
  request: PresentedHeaders
  address: string | undefined
}

export interface Admissions {
  /** Counts a request. Throws if the keys are not known, and throws or rejects if the limiter fails. */
  admit(requester: Requester): MaybePromise<Admission>
  /** The key of the request, if its secret has just been verified. Throws if the keys are not known. */
  verifiedKey(request: PresentedHeaders): ApiKey | undefined
  /**
   * Counts a request of this key, if that can be decided at once and its window has room. Otherwise it returns undefined,
   * and nothing is counted.
   */
  admitNow(apiKey: ApiKey): Admission | undefined
  /** Counts something that is not a readable request, against the bucket of its address. Fails like `admit`. */
  admitAddress(address: string | undefined): MaybePromise<Admission>
  /** Counts a preflight, against the bucket of its address for preflights. Fails like `admit`. */
  admitPreflight(address: string | undefined): MaybePromise<Admission>
  /** The result to use if no limiter could be asked: no requests remain, and the limit resets at the next second. */
  unknown(): Admission
}

type Identity = Pick<Admission, 'apiKey' | 'namedKey' | 'keyPrefix'>

const noKey = { apiKey: undefined, namedKey: undefined, keyPrefix: undefined }

/** Creates the admissions of one process. */
export function createAdmissions(
  keyRing: Pick<KeyRing, 'lookup'>,
  limiters: RateLimiters,
  pepper: string,
  { now }: Pick<Runtime, 'now'>,
): Admissions {
  const verify = createSecretVerifier(pepper)

  function identify(request: PresentedHeaders): Identity {
    const { key, secret } = presentedCredentials(request)
    const known = keyRing.lookup(key)
    // The same steps even if the key is unknown: the time of a refusal must not reveal which keys exist.
    const prefix = keyPrefix(key)
    const isValid = verify(known, secret)
    return { apiKey: isValid ? known : undefined, namedKey: known, keyPrefix: known && prefix }
  }

  function admitStranger(bucket: string, identity: Identity = noKey): MaybePromise<Admission> {
    const { windowMs } = limiters.addresses.settings
    return use(limiters.addresses.hit(bucket), decision => ({ ...identity, decision, windowMs }))
  }

  return {
    verifiedKey(request) {
      const { key, secret } = presentedCredentials(request)
      const known = keyRing.lookup(key)
      return verify.remembers(known, secret) ? known : undefined
    },

    admitNow(apiKey) {
      const { keys } = limiters
      const decision = keys.hitNow?.(apiKey.key)
      if (!decision?.allowed) return undefined
      const { windowMs } = keys.settings
      return { apiKey, namedKey: apiKey, keyPrefix: keyPrefix(apiKey.key), decision, windowMs }
    },

    admit({ request, address }) {
      const identity = identify(request)
      if (!identity.apiKey) return admitStranger(addressBucket(address), identity)
      const { windowMs } = limiters.keys.settings
      return use(limiters.keys.hit(identity.apiKey.key), decision => ({ ...identity, decision, windowMs }))
    },

    admitAddress: address => admitStranger(addressBucket(address)),
    admitPreflight: address => admitStranger(`preflights of ${addressBucket(address)}`),

    unknown() {
      const { limit, windowMs } = limiters.addresses.settings
      const resetAt = Math.floor(now() / 1000) + 1
      return {
        ...noKey,
        decision: { allowed: false, limit, remaining: 0, resetAt },
        windowMs,
      }
    },
  }
}
