/**
 * Yields to the event loop between the continuations of many callers that waited for one promise. Without this they all
 * run one after the other, and no other work runs before the last of them.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { yieldToEventLoop } from '../shared/yield-to-event-loop.ts'

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

/**
 * Creates a function that long work calls between its parts. After `msMax` of work it rests for as long as it worked. All
 * callers share it, so all long work together takes at most half of the event loop, and a request that passes through
 * the loop several times does not wait for a part each time. `now`: milliseconds of a clock that never runs backwards.
 */
export function createRest({ msMax, now }: { msMax: number; now: () => number }): () => Promise<void> {
  let last = Promise.resolve()
  let restedAt = Number.NEGATIVE_INFINITY

  async function restIfDue(): Promise<void> {
    const workedMs = now() - restedAt
    if (workedMs < msMax) return
    await delay(Math.min(Math.ceil(workedMs), restMsMax))
    restedAt = now()
  }

  return () => {
    last = last.then(restIfDue)
    return last
  }
}
