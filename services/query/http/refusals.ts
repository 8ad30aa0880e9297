/** Refusals: errors as they are sent, and when a request is refused before anything is read. Pure. */
import { basePath, methods, readScope } from '../../../contracts/api/conventions.ts'
import { type ErrorBody, type ErrorCode, errorBody, errors } from '../../../contracts/api/errors.ts'
import { errorBodySchema } from '../../../contracts/api/schemas.ts'
import type { Admission } from './admission.ts'
import { jsonType, type ResponseHeaders } from './headers.ts'

/** An error as it is sent, but for the headers that every response has. */
export interface Refusal {
  code: ErrorCode
  status: number
  headers: ResponseHeaders
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

/** What the router knows of a request's path and method. */
export type Routing = 'found' | 'wrong_method' | 'unknown'

/**
 * Why a request is refused before anything is read for it, or `undefined` when it may read. `failure` is what is known
 * to be wrong with it already.
 */
export function refusalCodeOf(
  { apiKey, decision }: Admission,
  { failure, routing }: { failure: ErrorCode | undefined; routing: Routing },
): ErrorCode | undefined {
  if (!decision.allowed) return 'rate_limited'
  if (failure !== undefined) return failure
  if (routing !== 'found') return routing === 'wrong_method' ? 'method_not_allowed' : 'not_found'
  if (apiKey === undefined) return 'unauthorized'
  return apiKey.scopes.includes(readScope) ? undefined : 'forbidden'
}

const resourcePattern = new RegExp(
  `^(?:https?://[^/?#]*)?${basePath}/(?:projects|projects/[^/?#]+|stats)(?:[?#]|$)`,
)

/** Whether something can be read at this request target, by the right method. */
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
    case 'internal_error':
      return {}
    default:
      return code satisfies never
  }
}
