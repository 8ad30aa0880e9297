/**
 * Admission: identifies the key of a request, and checks its rate limit.
 *
 * Every request is counted exactly once. If its credentials are valid, it counts against the bucket of its key,
 * whatever its response is. Otherwise it counts against the bucket of its address. Credentials are checked first, so a
 * flood of requests with bad credentials never blocks a good request from the same address. A preflight has no
 * credentials, so it counts against a bucket of its address that only preflights have: otherwise such a flood would block
 * the preflights of good requests.
 */

import {
  basePath,
  internalErrorRetrySeconds,
  methods,
  openApiPath,
} from '../../../contracts/api/conventions.ts'
import { type ErrorBody, type ErrorCode, errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import { addressBucket } from '../../runtime/http/addresses.ts'
import type { ApiKey, KeyRing } from '../auth/key-ring.ts'
import {
  createSecretVerifier,
  type PresentedHeaders,
  presentedCredentials,
} from '../auth/presented-credentials.ts'
import { operations } from '../endpoints/all.ts'
import { downloads } from '../endpoints/exports.ts'
import type { RateDecision, RateLimiters } from '../rate-limit/rate-limiter.ts'
import { jsonType, type ResponseHeaders } from './answer.ts'

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

/* Refusals: error responses. Pure. */

/** An error response, without the headers that every response has. */
export interface Refusal {
  code: ErrorCode
  status: number
  headers: ResponseHeaders
  body: string
}

/** What the refusals of some codes have besides. */
const ownHeaders: Partial<Record<ErrorCode, ResponseHeaders>> = {
  unauthorized: { 'www-authenticate': 'Bearer realm="api"' },
  method_not_allowed: { allow: methods },
  internal_error: { 'retry-after': String(internalErrorRetrySeconds) },
}

/** Builds the refusal with this body. */
export function refusal(body: ErrorBody): Refusal {
  const { code } = body.error
  return {
    code,
    status: errors[code].status,
    headers: { 'content-type': jsonType, 'cache-control': 'no-store', ...ownHeaders[code] },
    body: JSON.stringify(errorBodySchema.parse(body)),
  }
}

/** The paths of the API's first page. It needs no key. */
export const servicePaths = ['/', basePath, `${basePath}/`] as const

const resources = [
  ...servicePaths,
  openApiPath,
  ...[...operations, ...downloads].map(({ path }) => basePath + path),
]
  .map(path => path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+'))
  .join('|')
// An absolute target may have no path: that is the root.
const resourcePattern = new RegExp(`^(?:(?:(?i:https?)://[^/]*)?(?:${resources})|(?i:https?)://[^/]*)$`)

/** Whether this request target is a resource that the API can read. As in the router, the path is decoded and its case counts. */
export function isResource(target: string): boolean {
  const [path = ''] = target.split(/[?#]/, 1)
  try {
    return resourcePattern.test(decodeURI(path))
  } catch {
    return false
  }
}
