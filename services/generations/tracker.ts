/** Tracks one run of a rebuild: its phase, its rate, and its signs of life in the rebuild log. */
import type { LogPlace } from './attempts.ts'
import {
  beatMs,
  type Phase,
  type RebuildDetail,
  type RebuildProgress,
  type RebuildState,
  workPhases,
  writeRebuild,
} from './rebuild-log.ts'

export interface TrackerDependencies {
  log: LogPlace
  state: RebuildState
  onProgress: (state: RebuildState) => void
  monotonicMs: () => number
}

export interface RebuildTracker {
  readonly id: string
  readonly attempt: number
  readonly generation: number
  /** What changes in it is recorded with the next sign of life, or before. */
  readonly detail: RebuildDetail
  /** Begins a phase. It is in the log when this resolves. */
  enter(phase: Phase): Promise<void>
  progress(amounts: Pick<RebuildProgress, 'done' | 'of' | 'unit'> & { lagRecords?: number }): void
  /** Stops the signs of life. If there was a failure, writes it to the log. */
  close(failure?: string): Promise<void>
}

export function createTracker(dependencies: TrackerDependencies): RebuildTracker {
  const { log, onProgress, monotonicMs } = dependencies
  const state = structuredClone(dependencies.state)
  const { id, attempt, generation } = state
  /** Where the phase began in this run. */
  let first: { done: number; at: number } | undefined
  let enteredAt = monotonicMs()
  let writing: Promise<unknown> = Promise.resolve()
  const beating = setInterval(() => void beat(), beatMs)

  /** Writes one after the other, so that the latest state is the last row. */
  function write(): Promise<void> {
    const done = writing.then(() => writeRebuild(log, state))
    writing = done.catch(() => undefined)
    return done
  }

  async function beat(): Promise<void> {
    countTime()
    // A lost sign of life does no harm: the next one follows.
    await write().catch(() => undefined)
  }

  function countTime(): void {
    const at = monotonicMs()
    const phase = workPhases.find(name => name === state.phase)
    if (phase) state.detail.phaseMs[phase] = Math.round((state.detail.phaseMs[phase] ?? 0) + at - enteredAt)
    enteredAt = at
  }

  return {
    id,
    attempt,
    generation,
    detail: state.detail,

    async enter(phase) {
      countTime()
      state.phase = phase
      state.detail.progress = null
      first = undefined
      await write()
      onProgress(structuredClone(state))
    },

    progress({ done, of, unit, lagRecords = 0 }) {
      first ??= { done, at: monotonicMs() }
      const seconds = (monotonicMs() - first.at) / 1_000
      const rate = seconds > 0 ? (done - first.done) / seconds : 0
      const etaSeconds = of <= done ? 0 : rate > 0 ? Math.ceil((of - done) / rate) : null
      state.detail.progress = { done, of, unit, lagRecords, perSecond: Math.round(rate), etaSeconds }
      onProgress(structuredClone(state))
    },

    async close(failure) {
      clearInterval(beating)
      countTime()
      if (failure !== undefined) {
        state.detail.failure = failure
        await write().catch(() => undefined)
      }
      await writing
    },
  }
}
