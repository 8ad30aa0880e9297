/**
 * What code gets from the process that runs it: time, randomness, pauses, the log and the metrics. It is one argument. A function takes
 * the part that it needs: `Pick<Runtime, 'now' | 'sleep'>`. So a simulated run is deterministic, and no test waits.
 */
import type { Logger } from 'pino'
import { type Sleep, sleep } from './async/sleep.ts'
import { createMetrics, type Metrics } from './ops/metrics.ts'

export const dayMs = 86_400_000

export interface Runtime {
  /** The time of day, Unix ms. It may step. */
  now: () => number
  /** A clock that only grows, ms. */
  monotonicMs: () => number
  /** 0 to 1, without 1. */
  random: () => number
  sleep: Sleep
  logger: Logger
  metrics: Metrics
}

/** The runtime of a real process. */
export function createRuntime(logger: Logger, metrics: Metrics = createMetrics()): Runtime {
  return {
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    sleep,
    logger,
    metrics,
  }
}
