/** The parts of its runtime that the client uses. Each part can be replaced, for tests. */

export interface Runtime {
  fetch: typeof fetch
  /** Unix milliseconds. */
  now: () => number
  /** From 0 to below 1. */
  random: () => number
  /** Resolves after this time, or rejects with the signal's reason if the signal aborts first. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** The defaults, for Node, browsers and other runtimes with fetch. */
export const defaultRuntime: Runtime = {
  // Not the function itself: browsers throw if fetch is called as a method of another object.
  fetch: (input, init) => fetch(input, init),
  now: Date.now,
  random: Math.random,
  sleep,
}

/** How long it is until this moment: at most `msMax`, because a clock that was set back must not make a wait longer. */
export function msUntil(at: number, now: number, msMax: number): number {
  return Math.min(Math.max(0, at - now), msMax)
}

// Longer timers fire at once.
const timerMsMax = 2 ** 31 - 1

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      },
      Math.min(ms, timerMsMax),
    )
    signal?.addEventListener('abort', abort, { once: true })
  })
}
