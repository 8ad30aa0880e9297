/**
 * Answers that are asked for one by one: within its cache period an answer is given again without asking; after it, the
 * service is asked whether it still holds (which costs a request of the limit, but no body).
 */
import { wholeNumber } from './pacer.ts'
import type { Transport } from './transport.ts'

export interface KeptAnswer {
  headers: Headers
  text: string
  etag: string | undefined
  /** Unix milliseconds, until when asking again would bring the same. */
  freshUntil: number
}

export interface Answers {
  /** Rejects as `Transport.get` does. */
  get(path: string, signal?: AbortSignal): Promise<KeptAnswer>
}

const answersMax = 64

/** `now` is in Unix milliseconds. */
export function createAnswers(transport: Transport, now: () => number): Answers {
  // In the order of their last use.
  const kept = new Map<string, KeptAnswer>()

  return {
    async get(path, signal) {
      signal?.throwIfAborted()
      const known = kept.get(path)
      if (known && now() < known.freshUntil) return keep(path, known)
      const { status, headers, text } = await transport.get(path, { etag: known?.etag, signal })
      const etag = headers.get('etag') ?? undefined
      const body = status === 304 && known ? known.text : text
      return keep(path, { headers, text: body, etag, freshUntil: now() + freshMs(headers) })
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

/** How long this answer stands, from its receipt, in milliseconds: the rest of its `max-age` after its `Age` (RFC 9111). */
export function freshMs(headers: Headers): number {
  const lifetime = Number(/max-age=(\d{1,9})/.exec(headers.get('cache-control') ?? '')?.[1] ?? 0)
  const age = wholeNumber(headers.get('age')) ?? 0
  return Math.max(0, lifetime - age) * 1000
}
