/** Rebuilds as the commands see them: run here, and reported on, given up and dropped whichever process does the work. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { History } from '../log/port.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { type Sleep, sleep } from '../runtime/sleep.ts'
import { followMs, readCurrent } from '../tables/generations.ts'
import { type LogPlace, noteDropped, takeAttempt, untilEnded, writeRow } from './attempts.ts'
import { RebuildRefused } from './begin.ts'
import { dropDatabases, logPlaceOf, type RebuildTables } from './cluster.ts'
import type { RebuildDependencies } from './context.ts'
import { endAborted } from './give-up.ts'
import { runRebuild } from './rebuild.ts'
import {
  isAlive,
  isCommitted,
  isWorking,
  keptGeneration,
  latestRebuild,
  type RebuildRequest,
  type RebuildState,
  writeRebuild,
} from './rebuild-log.ts'

const lookMs = 250
const abortMsMax = 60_000

/** The latest rebuild. */
export interface RebuildReport extends RebuildState {
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
  config: Config
  logger: Logger
  withHistory<T>(work: (history: History) => Promise<T>): Promise<T>
  /** What reading events needs. Throws `RebuildRefused`, or if the tables were filled with other secrets. */
  decoding(): Promise<Pick<RebuildDependencies, 'hashBacker' | 'schemaRegistry'>>
}

export function createRebuilds(dependencies: RebuildsDependencies): Rebuilds {
  const { isAlone, config, logger, withHistory, decoding, ...place } = dependencies
  async function report(): Promise<RebuildReport | undefined> {
    const latest = await rebuildStatus(place)
    return latest && { ...latest, isAlive: latest.isAlive && !isAlone }
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
        await withHistory(async history => {
          const run = { run: `rebuild-${randomUUID()}`, isAlone, config, history, onProgress }
          const own = { ...place, ...run, ...createRuntime(logger), ...(await decoding()) }
          return runRebuild(own, request, watch.signal)
        })
        const done = await present()
        return begun ? { ...done, detail: { ...done.detail, differences: begun.detail.differences } } : done
      } catch (error) {
        if (!begun) throw error
        const failed = await present()
        // The rebuild log has the reason, unless writing it is what failed.
        if (isWorking(failed)) failed.detail.failure ??= messageOf(error)
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

/** The latest rebuild, and whether the generation from before is kept. `undefined` if there has never been one. */
export async function rebuildStatus(place: RebuildTables): Promise<RebuildReport | undefined> {
  const log = await logPlaceOf(place)
  const state = await latestRebuild(log)
  if (!state) return undefined
  const isPreviousKept = !isWorking(state) && (await keptGeneration(log)) !== undefined
  return { ...state, isAlive: isAlive(state), isPreviousKept }
}

/**
 * Gives up the open rebuild: through the process that works on it, or directly if that process is dead. Resolves when
 * nothing is left of it. Throws `RebuildRefused` if there is none, or if it is promoted.
 */
export async function abortRebuild(dependencies: AbortDependencies): Promise<void> {
  const { sleep } = dependencies
  const log = await logPlaceOf(dependencies)
  const state = await latestRebuild(log)
  if (!state || !isWorking(state)) throw new RebuildRefused('there is no rebuild to give up')
  await writeRow(log, { kind: 'abort', attempt: state.attempt })
  for (let waitedMs = 0; waitedMs < abortMsMax; waitedMs += lookMs) {
    const now = await latestRebuild(log)
    if (!now || now.attempt !== state.attempt || !isWorking(now)) return
    if (isAlive(now) && isCommitted(now))
      throw new RebuildRefused('it is too late: the new tables are being promoted')
    if (!isAlive(now)) return abortDead(dependencies, log, now)
    await sleep(lookMs)
  }
  throw new Error(`the process of the rebuild has not given up within ${abortMsMax / 1000} s`)
}

/** Its last statement may still be on its way, so it is given up first. */
async function abortDead(dependencies: AbortDependencies, log: LogPlace, state: RebuildState): Promise<void> {
  const { sleep } = dependencies
  const run = `abort-${state.attempt}`
  const attempt = await takeAttempt(log, run, { sleep, random: Math.random })
  await writeRow(log, { kind: 'given up', attempt: state.attempt, run })
  await untilEnded(log.tables, log.base, { sleep, monotonicMs: () => performance.now() })
  if (
    state.detail.request.kind === 'rebuild' &&
    (await readCurrent(log.tables, log.base)) === state.generation
  ) {
    throw new RebuildRefused(
      'the new tables are current already: run it again to complete it, and then roll back',
    )
  }
  await endAborted({ ...dependencies, log, run }, { ...state, attempt })
}

/** Drops the generation from before the last rebuild. Throws `RebuildRefused` if none is kept. */
export async function dropPrevious(place: RebuildTables): Promise<void> {
  const log = await logPlaceOf(place)
  const state = await latestRebuild(log)
  const kept = await keptGeneration(log)
  if (!state || isWorking(state) || kept === undefined) {
    throw new RebuildRefused('no tables from before a rebuild are kept')
  }
  await untilFollowed(log)
  const run = `drop-${kept}`
  const attempt = await takeAttempt(log, run, { sleep, random: Math.random })
  await noteDropped(log, { attempt, run, generation: kept })
  await dropDatabases(place, kept)
  await writeRebuild(log, { ...state, attempt, run, phase: 'dropped' })
}

const followedMs = 5 * followMs

/** What reads and folds follows a promotion within a second. Until then it needs the generation from before. */
async function untilFollowed({ tables, base }: LogPlace): Promise<void> {
  const [row] = await tables.rows<{ ageMs: number }>({
    query: `SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(max(written_at)) AS ageMs
            FROM ${base}.generation_log WHERE kind = 'current'`,
  })
  await sleep(Math.min(followedMs, Math.max(0, followedMs - (row?.ageMs ?? 0))))
}
