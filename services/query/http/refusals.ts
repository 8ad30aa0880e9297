/** Refusals: errors as they are sent, and when a request is refused before anything is read. Pure. */
import { basePath, methods, readScope } from '../../../contracts/api/conventions.ts'
import { type ErrorBody, type ErrorCode, errorBody, errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import type { Admission } from './admission.ts'
import { type Headers, jsonType } from './headers.ts'

/** An error as it is sent, but for the headers that every response has. */
export interface Refusal {
  code: ErrorCode
  status: number
  headers: Headers
  body: string
}

/** The refusal of this code; `body` where the registry's own text does not do. */
export function refusal(code: ErrorCode, body: ErrorBody = errorBody(code)): Refusal {
  return {
    code,
    status: errors[code].status,
    headers: { 'content-type': jsonType, 'cache-control': 'no-store', ...headersOf(code) },
    body: JSON.stringify(errorBodySchema.parse(body)),
  }
}

/**
 * Why a request is refused before anything is read for it, or `undefined` when it may read. `failure` is what is known
 * to be wrong with it already; `isRouted` says whether the router knows path and method together: when it does not,
 * the path alone tells a wrong method from an unknown path.
 */
export function refusalCodeOf(
  { apiKey, decision }: Admission,
  { failure, isRouted, path }: { failure: ErrorCode | undefined; isRouted: boolean; path: string },
): ErrorCode | undefined {
  if (!decision.allowed) return 'rate_limited'
  if (failure !== undefined) return failure
  if (!isRouted) return isResource(path) ? 'method_not_allowed' : 'not_found'
  if (apiKey === undefined) return 'unauthorized'
  return apiKey.scopes.includes(readScope) ? undefined : 'forbidden'
}

const resourcePattern = new RegExp(`^${basePath}/(?:projects|projects/[^/]+|stats)$`)

/** Whether something can be read at this path (without query), by the right method. */
export function isResource(path: string): boolean {
  return resourcePattern.test(path)
}

function headersOf(code: ErrorCode): Headers {
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
    case 'internal_error':
      return {}
    default:
      return code satisfies never
  }
}
