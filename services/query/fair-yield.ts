/**
 * Yields to the event loop between the continuations of many callers that waited for one promise. Without this they all
 * run one after the other, and no other work runs before the last of them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { yieldToEventLoop } from '../runtime/async/sleep.ts'

/**
 * Creates a function whose promises resolve in the order of the calls. After `msMax` of work it yields to the event
 * loop before it resolves the next one. `now`: milliseconds of a clock that never runs backwards.
 */
export function createFairYield({ msMax, now }: { msMax: number; now: () => number }): () => Promise<void> {
  let last = Promise.resolve()
  let yieldedAt = Number.NEGATIVE_INFINITY

  async function yieldIfDue(): Promise<void> {
    if (now() - yieldedAt < msMax) return
    await yieldToEventLoop()
    yieldedAt = now()
  }

  return () => {
    last = last.then(yieldIfDue)
    return last
  }
}

// A process that was stopped for longer must not rest for as long.
const restMsMax = 25

/** Runs work that calls `pause` between its parts. */
export type ShareOfLoop = <T>(work: (pause: () => Promise<void>) => Promise<T>) => Promise<T>

/**
 * Creates a function that runs long work in parts. After `partMsMax` of work a pause yields to the event loop. All work
 * shares one account: work beyond `restAfterMs` is followed by a rest of the same time, and idle time counts as rest. So a short piece of
 * work never rests, and all long work together takes at most half of the event loop: a request that passes through the loop
 * several times does not wait for a part each time. `now`: milliseconds of a clock that never runs backwards.
 */
export function createShareOfLoop({
  partMsMax,
  restAfterMs,
  now,
}: {
  partMsMax: number
  restAfterMs: number
  now: () => number
}): ShareOfLoop {
  let last = Promise.resolve()
  let running = 0
  /** The work that was not rested for yet, up to `countedAt`. */
  let owedMs = 0
  let countedAt = Number.NEGATIVE_INFINITY

  async function pauseIfDue(): Promise<void> {
    const workedMs = now() - countedAt
    if (workedMs < partMsMax) return
    owedMs += workedMs
    const dueMs = Math.min(Math.ceil(owedMs - restAfterMs), restMsMax)
    if (dueMs > 0) {
      await delay(dueMs)
      owedMs = restAfterMs
    } else {
      await yieldToEventLoop()
    }
    countedAt = now()
  }

  const pause = () => {
    last = last.then(pauseIfDue)
    return last
  }

  return async work => {
    if (running++ === 0) {
      owedMs = Math.max(0, owedMs - (now() - countedAt))
      countedAt = now()
    }
    try {
      return await work(pause)
    } finally {
      if (--running === 0) {
        owedMs += now() - countedAt
        countedAt = now()
      }
    }
  }
}
