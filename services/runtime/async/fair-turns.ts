/**
 * Fair turns: work that is costly starts in turn by key, and not in the order of arrival. So a key with a hundred
 * requests in hand delays another key's request by one turn, and not by a hundred.
 *
 * Promise: at most `runningMax` pieces of work run at once, and at most `runningPerKeyMax` of one key. At most
 * `waitingPerKeyMax` of one key wait, none of them longer than `waitMsMax`. Work whose client has gone never starts.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { yieldToEventLoop } from './sleep.ts'

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

export type FairTurns = ReturnType<typeof createFairTurns>

/** The work was refused: too much work is waiting, or it has waited too long. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
}

/** The client has closed its connection before the work started. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError'
}

const clientGone = () => new ClientGoneError('the client has closed its connection')

interface Waiting extends PromiseWithResolvers<void> {
  isGone: () => boolean
}

/** The work of one key. */
interface Line {
  running: number
  waiting: Set<Waiting>
}

/** Creates turns that no key has taken yet. */
export function createFairTurns(settings: FairTurnsSettings) {
  const { runningMax, runningPerKeyMax, waitingPerKeyMax, waitMsMax } = settings
  /** The key whose turn is next comes first. A key without work is not in the map. */
  const lines = new Map<string, Line>()
  let running = 0

  function removeGone(line: Line): void {
    for (const waiting of line.waiting) {
      if (!waiting.isGone()) continue
      line.waiting.delete(waiting)
      waiting.reject(clientGone())
    }
  }

  async function wait(key: string, line: Line, isGone: () => boolean): Promise<void> {
    if (line.waiting.size >= waitingPerKeyMax) removeGone(line)
    if (line.waiting.size >= waitingPerKeyMax)
      throw new OverloadedError(`${waitingPerKeyMax} requests of this key are waiting already`)
    const waiting: Waiting = { ...Promise.withResolvers<void>(), isGone }
    const timer = setTimeout(() => {
      line.waiting.delete(waiting)
      forgetIdle(key, line)
      waiting.reject(new OverloadedError(`no turn within ${waitMsMax} ms`))
    }, waitMsMax)
    line.waiting.add(waiting)
    return waiting.promise.finally(() => clearTimeout(timer))
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
      next.resolve()
    }
  }

  /** Counts work that starts. Its key goes to the end: all other keys have a turn before it has the next one. */
  function begin(key: string, line: Line): void {
    running++
    line.running++
    lines.delete(key)
    lines.set(key, line)
  }

  function forgetIdle(key: string, line: Line): void {
    if (line.running === 0 && line.waiting.size === 0) lines.delete(key)
  }

  return {
    /**
     * Runs work when its key has a turn. Rejects with the error of the work, with `OverloadedError` if too much work of
     * this key waits or it has waited too long, or with `ClientGoneError`.
     */
    async run<T>({ key, isGone }: Turn, work: () => Promise<T>): Promise<T> {
      if (isGone()) throw clientGone()
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
        running--
        line.running--
        startNext()
        forgetIdle(key, line)
      }
    },
  }
}

/** The calls of a function, one after the other. */
function inOrder(work: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve()
  return () => {
    last = last.then(work)
    return last
  }
}

/**
 * Creates a function that yields to the event loop between the continuations of many callers that waited for one promise. Without this
 * they all run one after the other, and no other work runs before the last of them. Its promises resolve in the order of the calls. After
 * `msMax` of work it yields before it resolves the next one. `now`: milliseconds of a clock that never runs backwards.
 */
export function createFairYield({ msMax, now }: { msMax: number; now: () => number }): () => Promise<void> {
  let yieldedAt = Number.NEGATIVE_INFINITY
  return inOrder(async () => {
    if (now() - yieldedAt < msMax) return
    await yieldToEventLoop()
    yieldedAt = now()
  })
}

// A process that was stopped for longer must not rest for as long.
const restMsMax = 25

/**
 * Creates a function that runs long work in parts: the work calls `pause` between them. After `partMsMax` of work a pause
 * yields to the event loop. All work shares one account: work beyond `restAfterMs` is followed by a rest of the same time,
 * and idle time counts as rest. So a short piece of work never rests, and all long work together takes at most half of the
 * event loop: a request that passes through the loop several times does not wait for a part each time. `now`: milliseconds
 * of a clock that never runs backwards.
 */
export function createShareOfLoop({
  partMsMax,
  restAfterMs,
  now,
}: {
  partMsMax: number
  restAfterMs: number
  now: () => number
}) {
  let running = 0
  /** The work that was not rested for yet, up to `countedAt`. */
  let owedMs = 0
  let countedAt = Number.NEGATIVE_INFINITY

  const pause = inOrder(async () => {
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
  })

  return async <T>(work: (pause: () => Promise<void>) => Promise<T>): Promise<T> => {
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
