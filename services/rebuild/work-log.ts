/** Keeps account of one run of a rebuild: its phase, its pace, and its signs of life in the rebuild log. */
import type { Databases, Tables } from '../shared/tables/port.ts'
import { createPace, type Pace } from './pace.ts'
import {
  beatMs,
  isCommitted,
  latestRebuild,
  type Phase,
  type RebuildDetail,
  type RebuildProgress,
  type RebuildState,
  type WorkPhase,
  workPhases,
  writeRebuild,
} from './rebuild-log.ts'

export interface WorkLogDependencies {
  tables: Tables
  databases: Databases
  state: RebuildState
  /** Somebody asked for its end. */
  onAbort: () => void
  onProgress: (state: RebuildState) => void
  monotonicMs: () => number
}

export interface WorkLog {
  readonly id: string
  readonly detail: RebuildDetail
  /** Whether this phase was left behind, by this run or one before. */
  isPast(phase: WorkPhase): boolean
  /** Begins a phase. In the log before it resolves, with what is to be kept. */
  enter(phase: Phase, keep?: Partial<RebuildDetail>): Promise<void>
  /** Keeps something, with the next sign of life at the latest. */
  note(keep: Partial<RebuildDetail>): void
  progress(amounts: Pick<RebuildProgress, 'done' | 'of' | 'unit'> & { lagRecords?: number }): void
  /** Ends the signs of life. Writes the last, with the failure where there was one. */
  close(failure?: string): Promise<void>
}

export function createWorkLog(dependencies: WorkLogDependencies): WorkLog {
  const { tables, databases, onAbort, onProgress, monotonicMs } = dependencies
  const state = structuredClone(dependencies.state)
  let pace: Pace = createPace(monotonicMs)
  let enteredAt = monotonicMs()
  let writing: Promise<unknown> = Promise.resolve()
  const beating = setInterval(() => void beat(), beatMs)

  /** One write after the other, so that the latest is the last. */
  function write(): Promise<void> {
    const done = writing.then(() => writeRebuild(tables, databases, state))
    writing = done.catch(() => undefined)
    return done
  }

  async function beat(): Promise<void> {
    countTime()
    // A sign of life that is not heard does no harm: the next one may be.
    await write().catch(() => undefined)
    const latest = await latestRebuild(tables, databases).catch(() => undefined)
    if (latest?.id === state.id && latest.isAborting && !isCommitted(state)) onAbort()
  }

  function countTime(): void {
    const at = monotonicMs()
    const phase = workPhases.find(name => name === state.phase)
    if (phase) state.detail.phaseMs[phase] = Math.round((state.detail.phaseMs[phase] ?? 0) + at - enteredAt)
    enteredAt = at
  }

  return {
    id: state.id,
    detail: state.detail,
    isPast: phase => workPhases.indexOf(phase) < workPhases.indexOf(state.phase as WorkPhase),

    async enter(phase, keep = {}) {
      countTime()
      state.phase = phase
      Object.assign(state.detail, keep, { progress: null })
      pace = createPace(monotonicMs)
      await write()
      onProgress(structuredClone(state))
    },

    note(keep) {
      Object.assign(state.detail, keep)
    },

    progress({ done, of, unit, lagRecords = 0 }) {
      pace.note(done)
      state.detail.progress = {
        done,
        of,
        unit,
        lagRecords,
        perSecond: Math.round(pace.perSecond()),
        etaSeconds: pace.secondsFor(of - done),
      }
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
