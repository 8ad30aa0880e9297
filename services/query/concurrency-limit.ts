/**
 * A concurrency limit in front of ClickHouse. It bounds how many statements run at once, how many wait, and how long
 * they wait. Work beyond these bounds is refused at once, so a flood of uncached queries fails fast instead of piling
 * up.
 */

export interface ConcurrencyLimitSettings {
  runningMax: number
  waitingMax: number
  /** How long work may wait before it starts. */
  waitMsMax: number
}

/** Runs work as soon as a slot is free. Rejects with the error of the work, or with `OverloadedError`. */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>

/** The work was refused: too much work is waiting, or it has waited too long. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
}

/** Creates a limit that nothing uses yet. */
export function createConcurrencyLimit({
  runningMax,
  waitingMax,
  waitMsMax,
}: ConcurrencyLimitSettings): ConcurrencyLimit {
  let running = 0
  const waiting = new Set<() => void>()

  function acquire(): Promise<void> {
    if (running < runningMax) {
      running++
      return Promise.resolve()
    }
    if (waiting.size >= waitingMax) {
      return Promise.reject(new OverloadedError(`${waitingMax} tasks are waiting already`))
    }
    return new Promise((resolve, reject) => {
      const start = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(start)
        reject(new OverloadedError(`no free slot within ${waitMsMax} ms`))
      }, waitMsMax)
      waiting.add(start)
    })
  }

  function release(): void {
    const [next] = waiting
    if (next === undefined) {
      running--
      return
    }
    // Hand the slot to the next waiter instead of freeing it, so that a new caller cannot take it first.
    waiting.delete(next)
    next()
  }

  return async work => {
    await acquire()
    try {
      return await work()
    } finally {
      release()
    }
  }
}
