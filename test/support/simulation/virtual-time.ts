/**
 * Time that passes only while everybody waits: a day takes a moment, and every run of a seed is the same.
 *
 * Who sleeps is woken in the order of the moments, and at one moment in an order of the world's choice. Between two wakings
 * everything runs that can run without waiting.
 */
import { intBetween, type Random } from '../../../services/demo/random.ts'
import { nextTurn } from '../../../services/shared/next-turn.ts'

/** Who is woken first of those that wake at one moment. */
export type WakingOrder = 'oldest first' | 'newest first' | 'drawn'

export interface VirtualTime {
  /** Unix milliseconds. */
  now(): number
  /** Resolves after so many milliseconds, to the nearest tick; rejects with the signal's reason when that comes first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Lets no time pass while this goes on: work that is real, as that of a real database. */
  outside<T>(work: Promise<T>): Promise<T>
  /** Lets time pass until the work is done. Rejects where nobody sleeps any more, or after `msMax`. */
  play<T>(work: Promise<T>, msMax: number): Promise<T>
}

interface Sleeper {
  at: number
  wake: () => void
}

export interface VirtualTimeSettings {
  /** Unix milliseconds. */
  startsAt: number
  tickMs: number
  order: WakingOrder
  random: Random
}

/** `tickMs`: what all waits are rounded to; a coarse tick makes many things happen at one moment. */
export function createVirtualTime({ startsAt, tickMs, order, random }: VirtualTimeSettings): VirtualTime {
  /** By moment, the latest first. */
  const sleepers: Sleeper[] = []
  let time = startsAt
  let outsideWorks = 0
  let onInside: (() => void) | undefined

  function add(sleeper: Sleeper): void {
    let last = sleepers.length
    while (last > 0 && (sleepers[last - 1]?.at ?? 0) < sleeper.at) last--
    let first = last
    while (first > 0 && sleepers[first - 1]?.at === sleeper.at) first--
    sleepers.splice(placeBetween(first, last), 0, sleeper)
  }

  // The last place is woken first.
  function placeBetween(first: number, last: number): number {
    switch (order) {
      case 'oldest first':
        return first
      case 'newest first':
        return last
      case 'drawn':
        return intBetween(random, first, last)
      default:
        return order satisfies never
    }
  }

  return {
    now: () => time,

    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const at = startsAt + Math.round((time - startsAt + Math.max(0, ms)) / tickMs) * tickMs
        const abort = () => {
          sleepers.splice(sleepers.indexOf(sleeper), 1)
          reject(signal?.reason)
        }
        const sleeper = {
          at,
          wake: () => {
            signal?.removeEventListener('abort', abort)
            resolve()
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        add(sleeper)
      })
    },

    async outside(work) {
      outsideWorks++
      try {
        const result = await work
        // What is quick enough to be there at once is no different in this from what is not.
        await nextTurn()
        return result
      } finally {
        outsideWorks--
        if (outsideWorks === 0) onInside?.()
      }
    },

    play(work, msMax) {
      const endsAt = time + msMax
      return new Promise((resolve, reject) => {
        let isOver = false
        work.then(resolve, reject).finally(() => {
          isOver = true
        })

        function turn(): void {
          onInside = undefined
          if (isOver) return
          if (outsideWorks > 0) {
            onInside = () => afterAll(turn)
            return
          }
          const next = sleepers.pop()
          if (next === undefined || next.at > endsAt) {
            const fault = next
              ? `not done after ${msMax} ms of virtual time`
              : 'everybody waits for what does not come'
            reject(new Error(fault))
            return
          }
          time = next.at
          next.wake()
          afterAll(turn)
        }
        afterAll(turn)
      })
    },
  }
}

/** Runs when no promise is left to go on: also of those who let a turn of the event loop pass, as services do once. */
function afterAll(turn: () => void): void {
  setImmediate(() => setImmediate(turn))
}
