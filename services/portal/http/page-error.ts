/** An answer that is an error, with a text for people. Thrown by handlers and hooks. */
export class PageError extends Error {
  override name = 'PageError'
  readonly status: number
  /** Seconds after which it makes sense to try again. */
  readonly retryAfterSeconds: number | undefined
  constructor(status: number, text: string, { retryAfterSeconds }: { retryAfterSeconds?: number } = {}) {
    super(text)
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}
