/**
 * The closed registry of the API's errors: code, HTTP status, and public text.
 *
 * Clients use the code. The text is for people. It contains nothing of the request or of the fault, except that the
 * text of `invalid_parameter` names the parameter. The texts that a newcomer meets first lead to the documentation.
 */
import { basePath } from './conventions.ts'

interface ErrorDefinition {
  readonly status: number
  readonly message: string
  /** The place in the documentation that helps. */
  readonly help?: string
}

const definitions = {
  invalid_parameter: { status: 400, message: 'A query parameter is malformed.' },
  malformed_request: {
    status: 400,
    message: 'The request is not well-formed HTTP, or its path is not well encoded.',
  },
  unauthorized: {
    status: 401,
    message: 'A valid API key and secret are required.',
    help: '#first-call',
  },
  forbidden: { status: 403, message: 'This API key does not carry the scope read:public.' },
  not_found: { status: 404, message: 'There is no such public resource.', help: '#error-not_found' },
  method_not_allowed: { status: 405, message: 'Only GET and OPTIONS are supported here.' },
  request_timeout: { status: 408, message: 'The request did not arrive in time.' },
  headers_too_large: { status: 431, message: 'The request line and headers are too large.' },
  rate_limited: { status: 429, message: 'The request limit is exceeded; please try again shortly.' },
  internal_error: { status: 500, message: 'The service could not answer; please try again later.' },
} as const satisfies Record<string, ErrorDefinition>

export type ErrorCode = keyof typeof definitions

export const errors: Readonly<Record<ErrorCode, ErrorDefinition>> = definitions

export const errorCodes = Object.keys(definitions) as [ErrorCode, ...ErrorCode[]]

/** The body of every error. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string }
}

/**
 * The body of an error with the registered text of its code. `documentationUrl`: where the documentation is. Without it
 * the text leads to the API's own first page, which needs no key.
 */
export function errorBody(code: ErrorCode, documentationUrl?: string): ErrorBody {
  const { message, help } = errors[code]
  if (help === undefined) return { error: { code, message } }
  // Nothing follows the address, so that it can be copied or clicked as it is.
  const place = documentationUrl === undefined ? basePath : `${documentationUrl}${help}`
  return { error: { code, message: `${message} See ${place}` } }
}

/** The body of `invalid_parameter`. Its text names the parameter and its rule. */
export function invalidParameterBody(parameter: string, rule: string): ErrorBody {
  return { error: { code: 'invalid_parameter', message: `${parameter} ${rule}.` } }
}

/** The body of a 416. Consumers of this version know its codes, so it has no code of its own. */
export const rangeBody: ErrorBody = {
  error: { code: 'malformed_request', message: 'The range begins after the end of the file.' },
}
