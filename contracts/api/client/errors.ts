/** The error of the client: one class with several codes. */
import type { ErrorCode } from '../errors.ts'

/**
 * The codes of the service, and those of the client:
 * - `network_failure`: no response, or none in time (see `cause`);
 * - `unexpected_response`: a response that this API does not send, for example of a proxy, or with invalid headers;
 * - `unstable_walk`: the pages changed more often than a walk could follow;
 * - `store_in_use`: another iteration uses the watermark store.
 */
export type ClientErrorCode =
  | ErrorCode
  | 'network_failure'
  | 'unexpected_response'
  | 'unstable_walk'
  | 'store_in_use'

export interface ClientErrorDetails {
  code: ClientErrorCode
  message: string
  /** The HTTP status; null if there was no response. */
  status?: number | null
  /** `X-Request-Id`, for a support request; null if there is none. */
  requestId?: string | null
  /** How long the service asks the client to wait, in milliseconds; null if it does not say. */
  retryAfterMs?: number | null
  cause?: unknown
}

/** Every error of the client, except the reason of an `AbortSignal` and errors that the consumer's own code throws. */
export class ClientError extends Error {
  override name = 'ClientError'
  readonly code: ClientErrorCode
  readonly status: number | null
  readonly requestId: string | null
  readonly retryAfterMs: number | null

  constructor({ code, message, cause, ...details }: ClientErrorDetails) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = details.status ?? null
    this.requestId = details.requestId ?? null
    this.retryAfterMs = details.retryAfterMs ?? null
  }
}

/** Whether a later retry of the request may succeed. */
export function isRetryable({ code, status }: ClientError): boolean {
  return code === 'network_failure' || status === 408 || status === 429 || (status !== null && status >= 500)
}

/** Whether the error may disappear without a change to the program, its credentials or its settings. */
export function isTransient(error: unknown): error is ClientError {
  return error instanceof ClientError && (isRetryable(error) || error.code === 'unstable_walk')
}
