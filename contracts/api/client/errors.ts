/** The errors of the client: one class, told apart by code. */
import type { ErrorCode } from '../errors.ts'

/**
 * The service's own codes, and the client's:
 * - `network_failure`: no answer, or none in time (`cause` says why);
 * - `unexpected_response`: an answer that is not this API's, as from a proxy, or one whose headers cannot be read;
 * - `filtered_delta`: a filter together with `updated_since`, which was not allowed;
 * - `unstable_walk`: the pages moved more often than a walk could follow within its bound;
 * - `store_in_use`: the watermark store is that of an iteration that has not ended.
 */
export type ClientErrorCode =
  | ErrorCode
  | 'network_failure'
  | 'unexpected_response'
  | 'filtered_delta'
  | 'unstable_walk'
  | 'store_in_use'

export interface ClientErrorDetails {
  code: ClientErrorCode
  message: string
  /** The HTTP status; null where there was no answer. */
  status?: number | null
  /** `X-Request-Id`, for a support request; null where there is none. */
  requestId?: string | null
  /** How long the service asks to wait, in milliseconds; null where it does not say. */
  retryAfterMs?: number | null
  cause?: unknown
}

/** Whatever the client rejects with, but for the reason of an `AbortSignal` and what a consumer's own code throws. */
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

/** Whether one more request, later, may find an answer. */
export function isRetryable({ code, status }: ClientError): boolean {
  return code === 'network_failure' || status === 429 || (status !== null && status >= 500)
}

/** Whether the condition may pass without anyone changing the program, its credentials or its settings. */
export function isTransient(error: unknown): error is ClientError {
  return error instanceof ClientError && (isRetryable(error) || error.code === 'unstable_walk')
}
