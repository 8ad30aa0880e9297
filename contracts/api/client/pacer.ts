/**
 * Keeps a client under its rate limit by what the responses say of it. The limit is the key's, so others may use it up
 * meanwhile: then the service refuses, which uses nothing up, and says when to come back.
 */
import type { Surroundings } from './surroundings.ts'

export interface Pacer {
  /** Resolves when a request may go. Waits 61 s at the most. */
  admit(signal?: AbortSignal): Promise<void>
  /** Takes note of what a response says. */
  learn(headers: Headers): void
}

// The window is a minute. A clock that is wrong must not make anyone wait for longer.
const waitMsMax = 61_000

export function createPacer({ now, sleep }: Pick<Surroundings, 'now' | 'sleep'>): Pacer {
  // Null: not known, so only asking can tell.
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

// `RateLimit` says it as a delay, which does not depend on the two clocks agreeing; `X-RateLimit-Reset` as a moment.
function resetDelayMs(headers: Headers, now: number): number | null {
  const delay = /;t=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
  if (delay !== undefined) return Number(delay) * 1000
  const reset = wholeNumber(headers.get('x-ratelimit-reset'))
  return reset === null ? null : reset * 1000 - now
}

/** A header of decimal digits as a number; null where it is something else or not there. */
export function wholeNumber(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null
}
