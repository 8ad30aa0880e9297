/** Where a rebuild is asked for, watched and given up, whichever process does the work. */
import { sleep } from '../projector/sleep.ts'
import type { History } from '../shared/event-log/history.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { RebuildRefused } from './claim.ts'
import { abortRebuild, dropPrevious, rebuildStatus } from './control.ts'
import { isWorking, RebuildInProgress, type RebuildRequest, type RebuildState } from './rebuild-log.ts'

/** The latest rebuild. */
export interface RebuildReport {
  state: RebuildState
  /** Whether a process is at it. */
  isAlive: boolean
  /** Whether the generation before it is kept. */
  isPreviousKept: boolean
}

export interface RebuildDesk {
  /**
   * Begins a rebuild, goes on with the open one, or, where this very one is running here, lets it run. Resolves once it is
   * under way. Throws `RebuildRefused`, `RebuildInProgress`, or why it could not begin.
   */
  start(request: RebuildRequest): Promise<RebuildReport>
  /** `undefined` where there never was one. */
  report(): Promise<RebuildReport | undefined>
  /** Gives the open one up and resolves when nothing is left of it. Throws `RebuildRefused`. */
  abort(): Promise<RebuildReport>
  /** Drops the generation before the last rebuild. Throws `RebuildRefused` where none is kept. */
  drop(): Promise<RebuildReport>
  /**
   * Of a desk whose rebuilds run in this process: stops the one that does, and begins no other. The reason is what the
   * rebuild log says of it.
   */
  close?(reason: string): Promise<void>
}

/** A desk whose rebuilds run in this process. */
export type LocalDesk = RebuildDesk & Required<Pick<RebuildDesk, 'close'>>

export interface DeskDependencies {
  tables: Tables
  databases: Databases
  /** Whether no other process can be at work on these tables. */
  isAlone: boolean
  withHistory<T>(work: (history: History) => Promise<T>): Promise<T>
  /** Carries a rebuild through: `runRebuild`, wired. */
  run(request: RebuildRequest, watch: Watch): Promise<unknown>
}

export interface Watch {
  onProgress: (state: RebuildState) => void
  signal: AbortSignal
}

interface Running {
  request: RebuildRequest
  /** As it told last. */
  state: RebuildState | undefined
  /** Settles with the first that it tells. Rejects with the reason where it ends before. */
  begun: Promise<void>
  ended: Promise<void>
}

export function createRebuildDesk(dependencies: DeskDependencies): LocalDesk {
  const { tables, databases, isAlone, withHistory } = dependencies
  const stop = new AbortController()
  let running: Running | undefined
  /** How the last one ended that failed here. The rebuild log has it too, unless that was what failed. */
  let failed: { id: string | undefined; message: string } | undefined

  function begin(request: RebuildRequest): Running {
    failed = undefined
    const first = Promise.withResolvers<void>()
    const begun: Running = { request, state: undefined, begun: first.promise, ended: Promise.resolve() }
    const work = dependencies.run(request, {
      signal: stop.signal,
      onProgress(state) {
        begun.state = state
        first.resolve()
      },
    })
    begun.ended = work
      .then(
        () => first.resolve(),
        (error: Error) => {
          failed = { id: begun.state?.id, message: error.message }
          first.reject(error)
        },
      )
      .finally(() => {
        running = undefined
      })
    return begun
  }

  async function report(): Promise<RebuildReport | undefined> {
    if (running?.state) return { state: running.state, isAlive: true, isPreviousKept: false }
    const status = await rebuildStatus({ tables, databases })
    if (!status) return undefined
    const { isAlive, isPreviousKept, ...state } = status
    if (failed?.id === state.id && isWorking(state)) state.detail.failure ??= failed.message
    // One that failed has told so, and is not at it any more.
    return { state, isAlive: isAlive && !isAlone && state.detail.failure === null, isPreviousKept }
  }

  async function present(): Promise<RebuildReport> {
    const latest = await report()
    if (!latest) throw new Error('the rebuild log is empty')
    return latest
  }

  return {
    report,

    async start(request) {
      if (stop.signal.aborted) throw new RebuildRefused('the process is about to stop')
      if (running && !isSame(running.request, request)) throw new RebuildInProgress(inProgress(running.state))
      running ??= begin(request)
      await running.begun
      return present()
    },

    async abort() {
      await withHistory(history => abortRebuild({ tables, databases, history, sleep }))
      await running?.ended
      return present()
    },

    async drop() {
      if (running) throw new RebuildInProgress(inProgress(running.state))
      await dropPrevious({ tables, databases })
      return present()
    },

    async close(reason) {
      stop.abort(new Error(reason))
      await running?.ended
    },
  }
}

function isSame(running: RebuildRequest, asked: RebuildRequest): boolean {
  const names = Object.keys(running) as (keyof RebuildRequest)[]
  return names.every(name => JSON.stringify(running[name]) === JSON.stringify(asked[name]))
}

function inProgress(state: RebuildState | undefined): string {
  const what = state ? ` (${state.phase}, begun ${state.detail.startedAt})` : ''
  return `another rebuild is running${what}: follow it with pledgeview rebuild status, or give it up with pledgeview rebuild abort`
}
