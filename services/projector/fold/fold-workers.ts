/**
 * The fold workers of one process: one for each shard of the tables. They all fold while this process leads.
 *
 * A single server has one shard, the tables themselves. On a cluster, each shard holds whole campaigns, so its fold worker
 * works only there. Each fold worker follows the batches of all projectors and picks the campaigns of its shard.
 */
import { createNotifier } from '../../shared/notifier.ts'
import { sleep } from '../../shared/sleep.ts'
import type { Shard } from '../../shared/tables/port.ts'
import { FoldPaused, SupersededFoldWorker } from './fold-epochs.ts'
import { runFoldLoop } from './fold-loop.ts'
import {
  createFoldWorker,
  type FoldReport,
  type FoldWorkerDependencies,
  type FoldWorkerSettings,
} from './fold-worker.ts'
import { untilNoFoldRunsIfSeen } from './running-folds.ts'
import type { SetAsideRecord } from './set-aside-statements.ts'
import type { ClockStep } from './stamp-floor.ts'

export interface FoldWorkersDependencies
  extends Pick<FoldWorkerDependencies, 'respectsPause' | 'onSetAside'> {
  shards: readonly Shard[]
  /** See `EpochDependencies`. */
  afterExpiredPause?: (shard: Shard) => Promise<void>
  /** Names this run of this process; unique. */
  holder: string
  settings: FoldWorkerSettings
  leads: () => boolean
  /** How often to poll for batches of other processes, ms. */
  idleMsMax: number
  /** How long retryable failures are retried before folding fails, ms. */
  retryMsMax: number
  onFold: (report: FoldReport) => void
  onRetry: (error: Error) => void
  onSuperseded: (error: Error) => void
  onStopped?: ((error: Error) => void) | undefined
  onLeadership: () => void
  onClockStep: (step: ClockStep) => void
  monotonicMs: () => number
  /** Unix ms. */
  now: () => number
  random: () => number
}

export interface FoldWorkers {
  /** Folds until the signal aborts. Throws the first failure that lasts; then no fold worker runs any more. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Tells that this process has appended to the batch log. An urgent batch ends the pause between two folds: a revoked key
   * must not wait for campaigns, and after a backlog there is nothing left to pause for.
   */
  noteBatch(batch: { isUrgent: boolean }): void
  /** Whether every batch that was noted is folded, in all shards. */
  isDone(): boolean
  /** Whether this process has the leadership, in all shards. */
  isLeading(): boolean
  /** The last fold that succeeded, also if there was nothing to fold; of the shard that is furthest behind. */
  lastFold(): LastFold | undefined
}

export interface LastFold {
  /** Every batch that was appended before this is in the read tables. Monotonic ms. */
  beganAt: number
  /** Unix ms. */
  completedAt: number
}

// Only a disk that stands still takes longer.
const stillRunningMsMax = 60_000

export function createFoldWorkers(dependencies: FoldWorkersDependencies): FoldWorkers {
  let batchesWritten = 0
  const foldWorkers = dependencies.shards.map(shard => ({
    shard,
    notifier: createNotifier(),
    // Ends the pause between two folds early.
    urgentNotifier: createNotifier(),
    // Unknown until the first fold: a killed run may have committed batches that it did not fold.
    batchesFolded: undefined as number | undefined,
    setAside: [] as readonly SetAsideRecord[],
    isLeading: false,
    lastFold: undefined as LastFold | undefined,
  }))

  function runOne(own: (typeof foldWorkers)[number], signal: AbortSignal): Promise<void> {
    const foldWorker = createFoldWorker({
      ...dependencies,
      ...own.shard,
      afterExpiredPause: async () => dependencies.afterExpiredPause?.(own.shard),
      sleep,
      signal,
      untilNoneRuns: () =>
        untilNoFoldRunsIfSeen(own.shard.tables, own.shard.databases, {
          msMax: stillRunningMsMax,
          monotonicMs: dependencies.monotonicMs,
          async sleep(ms) {
            await sleep(ms, signal)
            signal.throwIfAborted()
          },
        }),
      onSetAside(all, change) {
        own.setAside = all
        // Those of all shards.
        dependencies.onSetAside?.(
          foldWorkers.flatMap(({ setAside }) => setAside),
          change,
        )
      },
    })
    return runFoldLoop(
      {
        ...dependencies,
        foldWorker: {
          async acquireLeadership() {
            own.isLeading = false
            await foldWorker.acquireLeadership()
            own.isLeading = true
          },
          /** A fold that succeeds covers all batches that were written before it began, also if there was nothing to fold. */
          async fold() {
            const written = batchesWritten
            const beganAt = dependencies.monotonicMs()
            try {
              const report = await foldWorker.fold()
              own.batchesFolded = written
              own.lastFold = { beganAt, completedAt: dependencies.now() }
              return report
            } catch (error) {
              if (error instanceof FoldPaused || error instanceof SupersededFoldWorker) own.isLeading = false
              throw error
            }
          },
        },
        notifier: own.notifier,
        sleep: (ms, until = signal) => own.urgentNotifier.wait(ms, until),
      },
      signal,
    )
  }

  return {
    run: signal =>
      untilFirstFails(
        foldWorkers.map(own => until => runOne(own, until)),
        signal,
      ),
    noteBatch({ isUrgent }) {
      batchesWritten++
      for (const { notifier, urgentNotifier } of foldWorkers) {
        notifier.notify()
        if (isUrgent) urgentNotifier.notify()
      }
    },
    isLeading: () => dependencies.leads() && foldWorkers.every(({ isLeading }) => isLeading),
    lastFold() {
      const folds = foldWorkers.map(({ lastFold }) => lastFold)
      const done = folds.filter(fold => fold !== undefined)
      return done.length < folds.length
        ? undefined
        : done.reduce((last, fold) => (fold.beganAt < last.beganAt ? fold : last))
    },
    isDone: () => foldWorkers.every(({ batchesFolded }) => batchesFolded === batchesWritten),
  }
}

/** Runs all side by side. The first failure stops the others and is thrown. */
export async function untilFirstFails(
  works: readonly ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController()
  const both = AbortSignal.any([signal, ended.signal])
  const running = works.map(work => work(both))
  try {
    await Promise.all(running)
  } catch (error) {
    ended.abort()
    await Promise.allSettled(running)
    throw error
  }
}
