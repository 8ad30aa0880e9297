/**
 * One way to try again: after a failure that may pass, with a pause that doubles, until a bound is reached.
 *
 * The clock, the pause and the randomness are arguments, so that a simulated run is deterministic and tests do not wait.
 */
import { sleep as realSleep, type Sleep } from './sleep.ts'

/** At least one bound is required. Without `msMax` or `attemptsMax` a retry would never end. */
type RetryBound =
  | { attemptsMax: number; msMax?: number | undefined }
  | { attemptsMax?: number | undefined; msMax: number }

export type RetryPolicy = RetryBound & {
  /** Whether the same call may succeed later. Any other failure is thrown at once. */
  isRetryable: (error: unknown) => boolean
  /** The pause after the first failure, ms. It doubles with each further failure. */
  pauseMsMin: number
  /** The longest pause, ms. Default `pauseMsMin`: all pauses are the same. */
  pauseMsMax?: number
  /** Called before each pause. `attempt` counts the failures, from 1. */
  onRetry?: (error: Error, attempt: number) => void
}

/** The pauses while a service is away. */
export const outagePauses = { pauseMsMin: 200, pauseMsMax: 5_000 } as const

export interface RetryDependencies {
  /** Milliseconds, monotonic. */
  monotonicMs?: () => number
  sleep?: Sleep
  /** 0 to 1, for the jitter of the pauses. Without it there is no jitter. */
  random?: () => number
  /** Once it has aborted, the next failure is thrown. A pause ends early, so the work gets one last attempt. */
  signal?: AbortSignal | undefined
}

/**
 * Resolves with the result of the first attempt that succeeds. Rejects with the last error if that is not retryable, if a
 * bound is reached, or if the signal has aborted. `msMax` is compared when an attempt fails; it does not cut one off.
 */
export async function retry<T>(
  work: () => T | Promise<T>,
  policy: RetryPolicy,
  { monotonicMs = () => performance.now(), sleep = realSleep, random, signal }: RetryDependencies = {},
): Promise<T> {
  const { isRetryable, attemptsMax = Infinity, msMax = Infinity, onRetry } = policy
  const startedAt = monotonicMs()
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const isOver = attempt >= attemptsMax || monotonicMs() - startedAt > msMax || signal?.aborted
      if (isOver || !isRetryable(error)) throw error
      onRetry?.(error instanceof Error ? error : new Error(String(error)), attempt)
      await sleep(backoffMs(attempt, policy, random), signal)
    }
  }
}

/** The pause after so many failures: exponential backoff, with a jitter that takes up to half of it. Pure. */
export function backoffMs(
  failures: number,
  { pauseMsMin, pauseMsMax = pauseMsMin }: Pick<RetryPolicy, 'pauseMsMin' | 'pauseMsMax'>,
  random: () => number = () => 1,
): number {
  return Math.min(pauseMsMax, pauseMsMin * 2 ** Math.min(failures - 1, 30)) * (0.5 + random() / 2)
}
