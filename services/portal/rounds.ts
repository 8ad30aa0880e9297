/**
 * Work that every portal does again and again: a round, then a pause. How it fails: a round that fails is reported, and the next one
 * tries again.
 */
import { sleep as realSleep, type Sleep } from '../runtime/sleep.ts'

export interface Rounds {
  /** Waits for the round that is running. Its signal has aborted. */
  close(): Promise<void>
}

export interface RoundsOptions {
  pauseMs: number
  /** Called for every round that failed, for the log. */
  onError: (error: unknown) => void
  sleep?: Sleep
}

export function startRounds(
  round: (signal: AbortSignal) => Promise<unknown>,
  { pauseMs, onError, sleep = realSleep }: RoundsOptions,
): Rounds {
  const stopping = new AbortController()
  const { signal } = stopping

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await round(signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error)
      })
      await sleep(pauseMs, signal)
    }
  }

  const running = run()
  return {
    async close() {
      stopping.abort()
      await running
    },
  }
}
