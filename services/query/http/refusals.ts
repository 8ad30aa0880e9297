/** Refusals: error responses, and the decision to refuse a request before any data is read. Pure. */
import {
  basePath,
  internalErrorRetrySeconds,
  methods,
  openApiPath,
  readScope,
} from '../../../contracts/api/conventions.ts'
import { type ErrorBody, type ErrorCode, errorBody, errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import { operations } from '../endpoints/all.ts'
import { downloads } from '../endpoints/exports.ts'
import type { Admission } from './admission.ts'
import { jsonType, type ResponseHeaders } from './answer.ts'

/** An error response, without the headers that every response has. */
export interface Refusal {
  code: ErrorCode
  status: number
  headers: ResponseHeaders
  body: string
}

/** Builds the refusal of this code. Pass `body` to replace the registered text. */
export function refusal(code: ErrorCode, body: ErrorBody = errorBody(code)): Refusal {
  return {
    code,
    status: errors[code].status,
    headers: { 'content-type': jsonType, 'cache-control': 'no-store', ...headersOf(code) },
    body: JSON.stringify(errorBodySchema.parse(body)),
  }
}

/** What the router found for the path and the method of a request. `public`: a resource that needs no key. */
export type Routing = 'found' | 'public' | 'wrong_method' | 'unknown'

/**
 * Returns why a request is refused before any data is read for it, or `undefined` if it is allowed. `failure` is an
 * error that is already known.
 */
export function refusalCodeOf(
  { apiKey, decision }: Admission,
  { failure, routing }: { failure: ErrorCode | undefined; routing: Routing },
): ErrorCode | undefined {
  if (!decision.allowed) return 'rate_limited'
  if (failure !== undefined) return failure
  if (routing === 'public') return undefined
  if (routing !== 'found') return routing === 'wrong_method' ? 'method_not_allowed' : 'not_found'
  if (apiKey === undefined) return 'unauthorized'
  return apiKey.scopes.includes(readScope) ? undefined : 'forbidden'
}

/** The paths of the API's first page. It needs no key. */
export const servicePaths = ['/', basePath, `${basePath}/`] as const

const resources = [
  ...servicePaths,
  openApiPath,
  ...[...operations, ...downloads].map(({ path }) => basePath + path.replace(/\{\w+\}/g, '[^/?#]+')),
].join('|')
// An absolute target may have no path: that is the root.
const resourcePattern = new RegExp(`^(?:(?:https?://[^/?#]*)?(?:${resources})|https?://[^/?#]*)(?:[?#]|$)`)

/** Whether this request target is a resource that the API can read. */
export function isResource(target: string): boolean {
  return resourcePattern.test(target)
}

function headersOf(code: ErrorCode): ResponseHeaders {
  switch (code) {
    case 'unauthorized':
      return { 'www-authenticate': 'Bearer realm="api"' }
    case 'method_not_allowed':
      return { allow: methods }
    case 'invalid_parameter':
    case 'malformed_request':
    case 'forbidden':
    case 'not_found':
    case 'request_timeout':
    case 'headers_too_large':
    case 'rate_limited':
      return {}
    case 'internal_error':
      return { 'retry-after': String(internalErrorRetrySeconds) }
    default:
      return code satisfies never
  }
}
