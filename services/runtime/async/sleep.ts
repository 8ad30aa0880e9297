import { setTimeout as delay } from 'node:timers/promises'

/**
 * Resolves after that many milliseconds, or as soon as the signal aborts. Loops take it as an argument, like the
 * clock.
 */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>

export const sleep: Sleep = async (ms, signal) => {
  await delay(ms, undefined, signal && { signal }).catch(() => {})
}

/**
 * The result of the work. Throws if it fails or takes longer; it may still end later. `late`: the error if it takes longer.
 *
 * If this process was busy, the timer and the answer are due together, and the timer runs first. setImmediate lets the answer be
 * read before the rejection.
 */
export async function within<R>(
  msMax: number,
  work: Promise<R>,
  late = () => new Error(`no answer within ${msMax} ms`),
): Promise<R> {
  const { promise: timedOut, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => reject(late())), msMax)
  try {
    return await Promise.race([work, timedOut])
  } finally {
    clearTimeout(timer)
  }
}

/** Calls `look` every `everyMs` until it returns a value, for at most `msMax`. Then returns undefined. */
export async function untilFound<T>(
  msMax: number,
  look: () => Promise<T | undefined>,
  { monotonicMs, sleep, everyMs = 50 }: { monotonicMs: () => number; sleep: Sleep; everyMs?: number },
): Promise<T | undefined> {
  const deadline = monotonicMs() + msMax
  for (;;) {
    const found = await look()
    if (found !== undefined || monotonicMs() > deadline) return found
    await sleep(everyMs)
  }
}

/** Lets waiting I/O run before the caller goes on. */
export { setImmediate as yieldToEventLoop } from 'node:timers/promises'
