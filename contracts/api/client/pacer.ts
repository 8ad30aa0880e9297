/**
 * Keeps the client under its rate limit, based on the response headers. Other clients may use the same key and use up
 * the limit. Then the service refuses a request, which does not count, and says when to retry.
 */
import type { Runtime } from './runtime.ts'

export interface Pacer {
  /** Resolves when a request may be sent. Waits at most 61 s. */
  admit(signal?: AbortSignal): Promise<void>
  /** Reads the rate-limit headers of a response. */
  learn(headers: Headers): void
}

// The window is a minute. A wrong clock must not make a client wait longer.
const waitMsMax = 61_000

/** Creates a pacer that knows nothing of the limit yet. */
export function createPacer({ now, sleep }: Pick<Runtime, 'now' | 'sleep'>): Pacer {
  // Null: not known yet. Only a request can tell.
  let remaining: number | null = null
  let resetAt = 0

  return {
    async admit(signal) {
      if (remaining !== null && remaining <= 0) {
        const waitMs = Math.min(resetAt - now(), waitMsMax)
        if (waitMs > 0) await sleep(waitMs, signal)
        remaining = null
      }
      if (remaining !== null) remaining--
    },

    learn(headers) {
      const said = wholeNumber(headers.get('x-ratelimit-remaining'))
      const delayMs = resetDelayMs(headers, now())
      if (said === null || delayMs === null) return
      remaining = said
      resetAt = now() + delayMs
    },
  }
}

// `RateLimit` has a delay, which does not depend on the clocks; `X-RateLimit-Reset` has a moment.
function resetDelayMs(headers: Headers, now: number): number | null {
  const delay = /;t=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  if (delay !== undefined) return Number(delay) * 1000
  const reset = wholeNumber(headers.get('x-ratelimit-reset'))
  return reset === null ? null : reset * 1000 - now
}

/** Parses a header of decimal digits; null if it is something else or missing. */
export function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null
}
