/**
 * Admission: who a request is from, and whether there is room for it.
 *
 * Every request takes exactly one place: in its key's bucket when its credentials are valid, whatever becomes of it
 * afterwards, else in its address's bucket. Credentials are looked at first, so a flood of bad ones from an address
 * never keeps out a good one from there. A preflight takes none; it carries no credentials and runs nothing.
 */
import { type Credentials, keyPrefix } from '../../shared/credentials.ts'
import type { ApiKey, KeyRing } from '../key-ring.ts'
import type { RateDecision, RateLimiter, RateLimiters } from '../rate-limiter.ts'
import { addressBucket } from './address-bucket.ts'
import { type PresentedHeaders, presentedCredentials } from './presented-credentials.ts'
import { createSecretVerifier } from './secret-verifier.ts'

export interface Admission {
  /** The key, when the credentials are valid. */
  apiKey: ApiKey | undefined
  /** The prefix of the key that was named, when that key is active, whether or not the secret was right. */
  keyPrefix: string | undefined
  decision: RateDecision
  /** Of the limiter that decided. */
  windowMs: number
}

export interface Requester {
  request: PresentedHeaders
  address: string | undefined
}

export interface AdmissionDependencies {
  keyRing: Pick<KeyRing, 'lookup'>
  limiters: RateLimiters
  pepper: string
  /** Unix milliseconds. */
  now: () => number
}

export interface Admissions {
  /** Takes a place for a request. Rejects where keys or limiter cannot be asked. */
  admit(requester: Requester): Promise<Admission>
  /** The state of the requester's bucket, without taking a place. */
  peek(requester: Requester): Promise<Admission>
  /** Takes a place in the address's bucket for something that is no readable request. */
  admitAddress(address: string | undefined): Promise<Admission>
  /** What stands in where no limiter was asked: nothing is known to remain, and the next second may be better. */
  unknown(): Admission
}

export function createAdmissions({ keyRing, limiters, pepper, now }: AdmissionDependencies): Admissions {
  const verify = createSecretVerifier(pepper)

  function identify(request: PresentedHeaders): Pick<Admission, 'apiKey' | 'keyPrefix'> {
    const { key, secret }: Credentials = presentedCredentials(request) ?? { key: '', secret: '' }
    const known = keyRing.lookup(key)
    // Also for an unknown key: the time of a refusal must not tell which keys exist.
    const isValid = verify(known, secret)
    return { apiKey: isValid ? known : undefined, keyPrefix: known && keyPrefix(known.key) }
  }

  async function ask(verb: 'hit' | 'peek', { request, address }: Requester): Promise<Admission> {
    const identity = identify(request)
    const limiter: RateLimiter = identity.apiKey ? limiters.keys : limiters.addresses
    const decision = await limiter[verb](identity.apiKey?.key ?? addressBucket(address))
    return { ...identity, decision, windowMs: limiter.settings.windowMs }
  }

  return {
    admit: requester => ask('hit', requester),
    peek: requester => ask('peek', requester),
    async admitAddress(address) {
      const limiter = limiters.addresses
      const decision = await limiter.hit(addressBucket(address))
      return { apiKey: undefined, keyPrefix: undefined, decision, windowMs: limiter.settings.windowMs }
    },

    unknown() {
      const { limit, windowMs } = limiters.addresses.settings
      const resetAt = Math.floor(now() / 1000) + 1
      return {
        apiKey: undefined,
        keyPrefix: undefined,
        decision: { allowed: false, limit, remaining: 0, resetAt },
        windowMs,
      }
    },
  }
}
