/**
 * Fair turns: work that is costly starts in turn by key, and not in the order of arrival. So a key with a hundred
 * requests in hand delays another key's request by one turn, and not by a hundred.
 *
 * Promise: at most `runningMax` pieces of work run at once, and at most `runningPerKeyMax` of one key. At most
 * `waitingPerKeyMax` of one key wait, none of them longer than `waitMsMax`. Work whose client has gone never starts.
 */
export interface FairTurnsSettings {
  runningMax: number
  runningPerKeyMax: number
  waitingPerKeyMax: number
  /** How long work may wait before it starts. */
  waitMsMax: number
}

export interface Turn {
  /** The key that the work is for. */
  key: string
  /** Whether the client has closed its connection. */
  isGone: () => boolean
}

export interface FairTurns {
  /**
   * Runs work when its key has a turn. Rejects with the error of the work, with `OverloadedError` if too much work of
   * this key waits or it has waited too long, or with `ClientGoneError`.
   */
  run<T>(turn: Turn, work: () => Promise<T>): Promise<T>
}

/** The work was refused: too much work is waiting, or it has waited too long. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
}

/** The client has closed its connection before the work started. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError'
}

interface Waiting {
  isGone: () => boolean
  start: () => void
  leave: (error: Error) => void
}

/** The work of one key. */
interface Line {
  running: number
  waiting: Set<Waiting>
}

/** Creates turns that no key has taken yet. */
export function createFairTurns(settings: FairTurnsSettings): FairTurns {
  const { runningMax, runningPerKeyMax, waitingPerKeyMax, waitMsMax } = settings
  /** The key whose turn is next comes first. A key without work is not in the map. */
  const lines = new Map<string, Line>()
  let running = 0

  function removeGone(line: Line): void {
    for (const waiting of line.waiting) {
      if (!waiting.isGone()) continue
      line.waiting.delete(waiting)
      waiting.leave(new ClientGoneError('the client has closed its connection'))
    }
  }

  function wait(key: string, line: Line, isGone: () => boolean): Promise<void> {
    if (line.waiting.size >= waitingPerKeyMax) removeGone(line)
    if (line.waiting.size >= waitingPerKeyMax) {
      return Promise.reject(
        new OverloadedError(`${waitingPerKeyMax} requests of this key are waiting already`),
      )
    }
    return new Promise((resolve, reject) => {
      const leave = (error: Error) => {
        clearTimeout(timer)
        reject(error)
      }
      const start = () => {
        clearTimeout(timer)
        resolve()
      }
      const waiting: Waiting = { isGone, start, leave }
      const timer = setTimeout(() => {
        line.waiting.delete(waiting)
        forgetIdle(key, line)
        leave(new OverloadedError(`no turn within ${waitMsMax} ms`))
      }, waitMsMax)
      line.waiting.add(waiting)
    })
  }

  /** Starts work as long as there is room: one piece of a key, then one of the next key. */
  function startNext(): void {
    for (const [key, line] of lines) {
      if (running >= runningMax) return
      if (line.running >= runningPerKeyMax) continue
      removeGone(line)
      const [next] = line.waiting
      if (next === undefined) {
        forgetIdle(key, line)
        continue
      }
      line.waiting.delete(next)
      begin(key, line)
      next.start()
    }
  }

  /** Counts work that starts. Its key goes to the end: all other keys have a turn before it has the next one. */
  function begin(key: string, line: Line): void {
    running++
    line.running++
    lines.delete(key)
    lines.set(key, line)
  }

  function end(key: string, line: Line): void {
    running--
    line.running--
    startNext()
    forgetIdle(key, line)
  }

  function forgetIdle(key: string, line: Line): void {
    if (line.running === 0 && line.waiting.size === 0) lines.delete(key)
  }

  return {
    async run({ key, isGone }, work) {
      const line = lines.get(key) ?? { running: 0, waiting: new Set() }
      if (running < runningMax && line.running < runningPerKeyMax) {
        begin(key, line)
      } else {
        lines.set(key, line)
        await wait(key, line, isGone)
      }
      try {
        return await work()
      } finally {
        end(key, line)
      }
    },
  }
}
