/**
 * Work that a process does again and again: a round, then a pause. How it fails: a round that fails is reported, and the next one
 * tries again.
 */
import { sleep as realSleep, type Sleep } from './sleep.ts'

export type Rounds = ReturnType<typeof startRounds>

interface RoundsOptions {
  pauseMs: number
  /** Called for every round that failed, for the log. */
  onError: (error: unknown) => void
  sleep?: Sleep
}

export function startRounds(
  round: (signal: AbortSignal) => Promise<unknown>,
  { pauseMs, onError, sleep = realSleep }: RoundsOptions,
) {
  const stopping = new AbortController()
  const { signal } = stopping

  async function tryRound(): Promise<void> {
    try {
      await round(signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
  }

  async function run(): Promise<void> {
    await first
    for (;;) {
      await sleep(pauseMs, signal)
      if (signal.aborted) return
      await tryRound()
    }
  }

  const first = tryRound()
  const running = run()
  return {
    /** Resolves after the first round, even if it failed. */
    first,
    /** Waits for the round that is running. Its signal has aborted. */
    async close(): Promise<void> {
      stopping.abort()
      await running
    },
  }
}
