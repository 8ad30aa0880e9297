/** Rebuilds as the commands see them: run here, and reported on and dropped whichever process did the work. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { History } from '../log/port.ts'
import { sleep } from '../runtime/async/sleep.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createRuntime } from '../runtime/runtime.ts'
import {
  followMs,
  type GenerationLog,
  keptGeneration,
  readCurrent,
  readGenerations,
  standingGenerations,
  writeRow,
} from '../tables/generation-log.ts'
import { takeAttempt, untilEnded } from './attempts.ts'
import {
  dropDatabases,
  dropGeneration,
  generationLogOf,
  halfDropped,
  type RebuildDependencies,
  type RebuildTables,
  withDatabases,
} from './context.ts'
import { runRebuild } from './rebuild.ts'
import {
  consumerOf,
  findOwner,
  isAlive,
  isWorking,
  latestRebuild,
  type RebuildRequest,
  type RebuildState,
  writeRebuild,
} from './rebuild-log.ts'

/** The latest rebuild. */
export interface RebuildReport extends RebuildState {
  /** Whether a process works on it. */
  isAlive: boolean
  /** Whether the tables from before it are kept. */
  isPreviousKept: boolean
  /** Whether a drop was interrupted, so that databases of a dropped generation still stand. */
  isHalfDropped: boolean
}

interface Watch {
  onProgress: (state: RebuildState) => void
  /** Its reason is written to the rebuild log. */
  signal: AbortSignal
}

interface RebuildsDependencies extends RebuildTables {
  /** Whether no other process can work on these tables. */
  isAlone: boolean
  config: Config
  logger: Logger
  withHistory<T>(work: (history: History) => Promise<T>): Promise<T>
  /** What reading events needs. Throws if the tables were filled with other secrets. */
  decoding(): Promise<Pick<RebuildDependencies, 'hashBacker' | 'schemaRegistry'>>
}

export type Rebuilds = ReturnType<typeof createRebuilds>

/** What the commands do with rebuilds. */
export function createRebuilds(dependencies: RebuildsDependencies) {
  const { isAlone, config, logger, withHistory, decoding, ...place } = dependencies
  const report = () => rebuildStatus(place, isAlone)

  async function present(): Promise<RebuildReport> {
    const latest = await report()
    if (!latest) throw new Error('the rebuild log is empty')
    return latest
  }

  return {
    /** `undefined` if there has never been a rebuild. */
    report,

    /**
     * Begins a rebuild, or continues the open one, and runs it in this process until it ends or the signal aborts. If it fails once it
     * has begun, the report says why. Throws why it could not begin.
     */
    async run(request: RebuildRequest, watch: Watch): Promise<RebuildReport> {
      let isBegun = false
      function onProgress(state: RebuildState): void {
        isBegun = true
        watch.onProgress(state)
      }
      try {
        const { detail } = await withHistory(async history => {
          const run = { run: `rebuild-${randomUUID()}`, isAlone, config, history, onProgress }
          const own = { ...place, ...run, ...createRuntime(logger), ...(await decoding()) }
          return runRebuild(own, request, watch.signal)
        })
        const done = await present()
        return { ...done, detail: { ...done.detail, differences: detail.differences } }
      } catch (error) {
        if (!isBegun) throw error
        const failed = await present()
        // The rebuild log has the reason, unless writing it is what failed.
        if (isWorking(failed)) failed.detail.failure ??= messageOf(error)
        return { ...failed, isAlive: false }
      }
    },

    /**
     * Drops all tables but the current ones, those of an unfinished rebuild included. Throws if that is not possible, also if another
     * generation than `expected` is current.
     */
    async drop(expected?: number): Promise<RebuildReport> {
      const forget = (consumer: string) => withHistory(history => history.forget(consumer))
      await dropOthers({ ...place, isAlone, forget, expected })
      return present()
    },
  }
}

const time = { sleep, monotonicMs: () => performance.now() }

export interface DropDependencies extends RebuildTables {
  isAlone?: boolean
  forget: History['forget']
  /** The generation that has to be current. */
  expected?: number | undefined
}

/** The latest rebuild, and whether the generation from before is kept. `undefined` if there has never been one. */
export async function rebuildStatus(
  place: RebuildTables,
  isAlone = false,
): Promise<RebuildReport | undefined> {
  const generationLog = await generationLogOf(place)
  const state = await latestRebuild(generationLog)
  if (!state) return undefined
  const all = await readGenerations(generationLog)
  const kept = isWorking(state) ? undefined : keptGeneration(all)
  const isPreviousKept = kept !== undefined && (await withDatabases(place, [kept], 'some')).length > 0
  const isHalfDropped = (await halfDropped(place, all)).length > 0
  return {
    ...state,
    ageMs: Math.max(0, state.ageMs),
    isAlive: await isAlive(generationLog, state, { isAlone, ...time }),
    isPreviousKept,
    isHalfDropped,
  }
}

/**
 * Drops all generations but the current one, and gives an unfinished rebuild up. Throws if there are none, if a process
 * works on one, or if another one than the expected is current.
 */
export async function dropOthers({
  isAlone = false,
  forget,
  expected,
  ...place
}: DropDependencies): Promise<void> {
  const generationLog = await generationLogOf(place)
  const { tables, base } = generationLog
  const { latest: state, isOwned } = await findOwner(generationLog, { isAlone, ...time })
  if (state && isOwned) {
    throw new Error(`a rebuild is running (${state.phase}): interrupt its command first`)
  }
  const isOpen = state !== undefined && isWorking(state)
  const all = await readGenerations(generationLog)
  const left = await halfDropped(place, all)
  if (!state || (!isOpen && keptGeneration(all) === undefined && left.length === 0)) {
    throw new Error('there are no tables but the current ones')
  }
  await untilFollowed(generationLog)
  const run = `drop-${state.attempt}`
  const attempt = await takeAttempt(generationLog, run, { sleep, random: Math.random })
  // A last statement of a rebuild that was killed may still be on its way.
  await writeRow(generationLog, { kind: 'given up', attempt: state.attempt, run })
  await untilEnded(tables, base, time)
  const current = await readCurrent(tables, base)
  // Since the attempt was taken, no other process can make another one current.
  if (expected !== undefined && current !== expected)
    throw new Error(
      'another generation became current meanwhile, so nothing was dropped: run the same command again',
    )
  for (const generation of standingGenerations(await readGenerations(generationLog))) {
    if (generation !== current) await dropGeneration({ ...place, generationLog, run }, attempt, generation)
  }
  for (const generation of left) await dropDatabases(place, generation)
  if (isOpen) await forget(consumerOf(state))
  const detail = { ...state.detail, failure: null }
  await writeRebuild(generationLog, { ...state, attempt, run, phase: 'dropped', detail })
}

const followedMs = 5 * followMs

/** What reads and folds follows a promotion within a second. Until then it needs the generation from before. */
async function untilFollowed({ tables, base }: GenerationLog): Promise<void> {
  const [row] = await tables.rows<{ ageMs: number }>({
    query: `SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) - toUnixTimestamp64Milli(max(written_at)) AS ageMs
            FROM ${base}.generation_log WHERE kind = 'current'`,
  })
  await sleep(Math.min(followedMs, Math.max(0, followedMs - (row?.ageMs ?? 0))))
}
