/**
 * A gate before ClickHouse: so many statements at once, so many waiting, for so long. What is beyond is refused at
 * once, so that a flood of queries that no cache knows fails fast instead of piling up work that nobody waits for.
 */

export interface GateSettings {
  runningMax: number
  waitingMax: number
  /** For a place, before the work starts. */
  waitMsMax: number
}

/** Runs work as soon as there is a place for it. Rejects with the work's error, or with `OverloadedError`. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>

/** There was no place for the work within the gate's bounds. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
}

export function createGate({ runningMax, waitingMax, waitMsMax }: GateSettings): Gate {
  let running = 0
  const waiting = new Set<() => void>()

  function enter(): Promise<void> {
    if (running < runningMax) {
      running++
      return Promise.resolve()
    }
    if (waiting.size >= waitingMax) return Promise.reject(new OverloadedError(`${waitingMax} wait already`))
    return new Promise((resolve, reject) => {
      const admit = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(admit)
        reject(new OverloadedError(`no place within ${waitMsMax} ms`))
      }, waitMsMax)
      waiting.add(admit)
    })
  }

  function leave(): void {
    const [next] = waiting
    if (next === undefined) {
      running--
      return
    }
    // The place is handed over rather than freed, so that nobody who comes just now can take it.
    waiting.delete(next)
    next()
  }

  return async work => {
    await enter()
    try {
      return await work()
    } finally {
      leave()
    }
  }
}
