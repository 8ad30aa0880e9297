/** Rebuilds as the commands see them: run here, and reported on, given up and dropped whichever process does the work. */
import type { History } from '../log/port.ts'
import { messageOf } from '../runtime/message-of.ts'
import { type Sleep, sleep } from '../runtime/sleep.ts'
import { dropShadow, hasShadow } from './build/shadow-tables.ts'
import type { RebuildTables } from './cluster.ts'
import { RebuildRefused } from './lease.ts'
import {
  askToAbort,
  consumerOf,
  isAlive,
  isCommitted,
  isWorking,
  latestRebuild,
  type RebuildRequest,
  type RebuildState,
  writeRebuild,
} from './rebuild-log.ts'

const lookMs = 250
const abortMsMax = 60_000

/** The latest rebuild. */
export interface RebuildReport {
  state: RebuildState
  /** Whether a process works on it. */
  isAlive: boolean
  /** Whether the tables from before it are kept. */
  isPreviousKept: boolean
}

/** What the commands do with rebuilds. */
export interface Rebuilds {
  /**
   * Begins a rebuild, or continues the open one, and runs it in this process until it ends or the signal aborts. If it fails once it
   * has begun, the report says why. Throws `RebuildRefused`, `RebuildInProgress`, or why it could not begin.
   */
  run(request: RebuildRequest, watch: Watch): Promise<RebuildReport>
  /** `undefined` if there has never been a rebuild. */
  report(): Promise<RebuildReport | undefined>
  /** Gives up the open rebuild, whichever process works on it. Resolves when nothing is left of it. Throws `RebuildRefused`. */
  abort(): Promise<RebuildReport>
  /** Drops the tables from before the last rebuild. Throws `RebuildRefused` if none are kept. */
  drop(): Promise<RebuildReport>
}

export interface Watch {
  onProgress: (state: RebuildState) => void
  /** Its reason is written to the rebuild log. */
  signal: AbortSignal
}

export interface RebuildsDependencies extends RebuildTables {
  /** Whether no other process can work on these tables. */
  isAlone: boolean
  withHistory<T>(work: (history: History) => Promise<T>): Promise<T>
  /** Runs a rebuild to its end: `runRebuild` with its dependencies. */
  runRebuild(history: History, request: RebuildRequest, watch: Watch): Promise<unknown>
}

export function createRebuilds({
  isAlone,
  withHistory,
  runRebuild,
  ...place
}: RebuildsDependencies): Rebuilds {
  async function report(): Promise<RebuildReport | undefined> {
    const status = await rebuildStatus(place)
    if (!status) return undefined
    const { isAlive, isPreviousKept, ...state } = status
    return { state, isAlive: isAlive && !isAlone, isPreviousKept }
  }

  async function present(): Promise<RebuildReport> {
    const latest = await report()
    if (!latest) throw new Error('the rebuild log is empty')
    return latest
  }

  return {
    report,

    async run(request, watch) {
      let begun: RebuildState | undefined
      function onProgress(state: RebuildState): void {
        begun = state
        watch.onProgress(state)
      }
      try {
        await withHistory(history => runRebuild(history, request, { ...watch, onProgress }))
        return await present()
      } catch (error) {
        if (!begun) throw error
        const failed = await present()
        // The rebuild log has the reason, unless writing it is what failed.
        if (isWorking(failed.state)) failed.state.detail.failure ??= messageOf(error)
        return { ...failed, isAlive: false }
      }
    },

    async abort() {
      await withHistory(history => abortRebuild({ ...place, history, sleep }))
      return present()
    },

    async drop() {
      await dropPrevious(place)
      return present()
    },
  }
}

export interface AbortDependencies extends RebuildTables {
  history: History
  sleep: Sleep
}

/** The latest rebuild, and whether the tables from before it are kept. `undefined` if there has never been one. */
export async function rebuildStatus(
  place: RebuildTables,
): Promise<(RebuildState & { isAlive: boolean; isPreviousKept: boolean }) | undefined> {
  const state = await latestRebuild(place.tables, place.databases)
  if (!state) return undefined
  const isPreviousKept = state.phase === 'rebuilt' && (await hasShadow(place))
  return { ...state, isAlive: isAlive(state), isPreviousKept }
}

/**
 * Gives up the open rebuild: through the process that works on it, or directly if that process is dead. Resolves when
 * nothing is left of it. Throws `RebuildRefused` if there is none, or if its swap has begun.
 */
export async function abortRebuild(dependencies: AbortDependencies): Promise<RebuildState> {
  const { tables, databases, sleep } = dependencies
  const state = await latestRebuild(tables, databases)
  if (!state || !isWorking(state)) throw new RebuildRefused('there is no rebuild to give up')
  if (isCommitted(state)) {
    throw new RebuildRefused(
      'the tables are being swapped: let the rebuild end (if it was killed, run it again), and then roll back',
    )
  }
  await askToAbort(tables, databases, state.id)
  for (let waitedMs = 0; waitedMs < abortMsMax; waitedMs += lookMs) {
    const now = await latestRebuild(tables, databases)
    if (!now || now.id !== state.id || !isWorking(now)) return now ?? state
    if (isCommitted(now)) throw new RebuildRefused('it is too late: the tables are being swapped')
    if (!isAlive(now)) return giveUp(dependencies, now)
    await sleep(lookMs)
  }
  throw new Error(`the process of the rebuild has not given up within ${abortMsMax / 1000} s`)
}

/** Removes everything that a rebuild has made. A rollback that is given up keeps the previous tables. */
export async function giveUp(
  { tables, databases, cluster, history }: AbortDependencies,
  state: Pick<RebuildState, 'id' | 'run' | 'detail'>,
): Promise<RebuildState> {
  const isRollback = state.detail.request.kind === 'rollback'
  if (!isRollback) await dropShadow({ tables, databases, cluster })
  await history.forget(consumerOf(state.id))
  const detail = { ...state.detail, failure: null }
  const ended = { ...state, detail, phase: isRollback ? 'rebuilt' : 'aborted' } as const
  await writeRebuild(tables, databases, ended)
  return { ...ended, writtenAt: '', ageMs: 0, isAborting: false }
}

/** Drops the tables from before the last rebuild. Throws `RebuildRefused` if none are kept. */
export async function dropPrevious(place: RebuildTables): Promise<void> {
  const state = await rebuildStatus(place)
  if (!state?.isPreviousKept) throw new RebuildRefused('no tables from before a rebuild are kept')
  await dropShadow(place)
  await writeRebuild(place.tables, place.databases, { ...state, phase: 'dropped' })
}
