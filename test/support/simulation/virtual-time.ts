/**
 * Virtual time. It passes only while every process waits: a day takes a moment, and every run of a seed is the same.
 *
 * Sleeping processes are woken in the order of their times. At the same time, the world chooses the order. Between two
 * wakings, everything runs that can run without waiting.
 */

import { yieldToEventLoop } from '../../../services/runtime/async/sleep.ts'
import { intBetween, type Random } from '../runner/random.ts'
import type { Scenario } from './scenario.ts'

export type VirtualTime = ReturnType<typeof createVirtualTime>

interface Sleeper {
  at: number
  wake: () => void
}

export function createVirtualTime(
  { startsAt, tickMs, wakingOrder }: Pick<Scenario, 'startsAt' | 'tickMs' | 'wakingOrder'>,
  random: Random,
) {
  /** By time, the latest first. */
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
    switch (wakingOrder) {
      case 'oldest first':
        return first
      case 'newest first':
        return last
      case 'drawn':
        return intBetween(random, first, last)
      default:
        return wakingOrder satisfies never
    }
  }

  return {
    /** Unix milliseconds. */
    now: () => time,

    /** Resolves after this many milliseconds, rounded to a tick. Rejects with the signal's reason if that comes first. */
    sleep(ms: number, signal?: AbortSignal): Promise<void> {
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

    /** Stops time while this runs. For real work, such as that of a real database. */
    async outside<T>(work: Promise<T>): Promise<T> {
      outsideWorks++
      try {
        const result = await work
        // Work that ends within this turn of the event loop does not stop time.
        await yieldToEventLoop()
        return result
      } finally {
        outsideWorks--
        if (outsideWorks === 0) onInside?.()
      }
    },

    /** Lets time pass until the work is done. Rejects when nothing sleeps any more, or after `msMax`. */
    play<T>(work: Promise<T>, msMax: number): Promise<T> {
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
              : 'every process waits, and none has a time to wake'
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

/** Runs when no promise can continue, not even one that yields to the event loop once, as services do. */
function afterAll(turn: () => void): void {
  setImmediate(() => setImmediate(turn))
}
