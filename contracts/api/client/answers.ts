/**
 * A cache of single responses. Within its cache period a response is returned without a request. After that, a
 * conditional request asks whether it is still valid: this counts against the rate limit, but transfers no body.
 */
import { wholeNumber } from './pacer.ts'
import type { Transport } from './transport.ts'

export interface KeptAnswer {
  headers: Headers
  text: string
  etag: string | undefined
  /** Unix milliseconds. From the first to the second, a request would return the same response. */
  receivedAt: number
  freshUntil: number
}

export interface Answers {
  /** Rejects as `Transport.get` does. */
  get(path: string, signal?: AbortSignal): Promise<KeptAnswer>
}

const answersMax = 64

/** `now` is in Unix milliseconds. */
export function createAnswers(transport: Transport, now: () => number): Answers {
  // Ordered by last use.
  const kept = new Map<string, KeptAnswer>()

  return {
    async get(path, signal) {
      signal?.throwIfAborted()
      const known = kept.get(path)
      // A clock that was set back makes no answer younger.
      if (known && known.receivedAt <= now() && now() < known.freshUntil) return keep(path, known)
      const { status, headers, text } = await transport.get(path, { etag: known?.etag, signal })
      const etag = headers.get('etag') ?? undefined
      const body = status === 304 && known ? known.text : text
      const receivedAt = now()
      const answer = { headers, text: body, etag, receivedAt, freshUntil: receivedAt + freshMs(headers) }
      // Another request may have been answered meanwhile. What it kept may be newer.
      return kept.get(path) === known ? keep(path, answer) : answer
    },
  }

  function keep(path: string, answer: KeptAnswer): KeptAnswer {
    kept.delete(path)
    kept.set(path, answer)
    const [oldest] = kept.keys()
    if (kept.size > answersMax && oldest !== undefined) kept.delete(oldest)
    return answer
  }
}

/** How long this response stays valid after its receipt, in milliseconds: its `max-age` minus its `Age` (RFC 9111). */
export function freshMs(headers: Headers): number {
  const ageMs = (wholeNumber(headers.get('age')) ?? 0) * 1000
  return Math.max(0, (lifetimeMs(headers) ?? 0) - ageMs)
}

/** The cache period of the service, by its `max-age`. */
export function lifetimeMs(headers: Headers): number | null {
  const seconds = /max-age=(\d{1,9})/.exec(headers.get('cache-control') ?? '')?.[1]
  return seconds === undefined ? null : Number(seconds) * 1000
}
