/** What the client needs of the platform it runs on. Every part can be replaced, which is how it is tested. */

export interface Surroundings {
  fetch: typeof fetch
  /** Unix milliseconds. */
  now: () => number
  /** From 0 to below 1. */
  random: () => number
  /** Resolves after so many milliseconds; rejects with the signal's reason when that comes first. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** Those of Node, browsers and other runtimes with fetch. */
export const defaultSurroundings: Surroundings = {
  // Not the function itself: browsers refuse to run it as another object's method.
  fetch: (input, init) => fetch(input, init),
  now: Date.now,
  random: Math.random,
  sleep,
}

// Timers beyond this fire at once.
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
