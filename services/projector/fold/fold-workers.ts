/**
 * The fold workers of one process: one for each shard of the tables. They all fold while this process leads.
 *
 * A single server has one shard, the tables themselves. On a cluster, each shard holds whole campaigns, so its fold worker
 * works only there. Each fold worker follows the batches of all projectors and picks the campaigns of its shard.
 */
import { LogHeld, SupersededAssignment } from '../../log/port.ts'
import { createNotifier, type Notifier } from '../../runtime/async/notifier.ts'
import { dayMs, type Runtime } from '../../runtime/runtime.ts'
import { type Shard, TablesError } from '../../tables/port.ts'
import { FoldPaused, SupersededFoldWorker } from './fold-epochs.ts'
import { untilNoFoldRuns } from './fold-leadership.ts'
import { createFoldWorker, type FoldReport, type FoldWorkerDependencies } from './fold-worker.ts'
import type { QuarantinedCampaign } from './quarantine.ts'

export interface FoldWorkersDependencies
  extends Omit<FoldLoopDependencies, 'foldWorker' | 'notifier' | 'rest'>,
    Pick<FoldWorkerDependencies, 'config' | 'onQuarantine' | 'onClockStep' | 'isGivenUp' | 'random'> {
  shards: readonly Shard[]
  /** Looks up which generation is current. */
  follow: () => Promise<unknown>
  /** See `EventReader`. */
  rememberWatermark: (watermark: number, shown: number) => Promise<number>
  /** Notes that this process leads. */
  noteLead: () => Promise<void>
}

export type FoldWorkers = ReturnType<typeof createFoldWorkers>

interface LastFold {
  /** Every batch that was appended before this is in the read tables. Monotonic ms. */
  beganAt: number
  /** Unix ms. */
  completedAt: number
}

// Only a disk that stands still takes longer.
const stillRunningMsMax = 60_000

export function createFoldWorkers(dependencies: FoldWorkersDependencies) {
  let batchesWritten = 0
  let firstLedAt: number | undefined
  const foldWorkers = dependencies.shards.map(shard => ({
    shard,
    notifier: createNotifier(),
    // Ends the pause between two folds early.
    urgentNotifier: createNotifier(),
    // Unknown until the first fold: a killed run may have committed batches that it did not fold.
    batchesFolded: undefined as number | undefined,
    quarantine: [] as readonly QuarantinedCampaign[],
    /** The watermark of this shard, Unix ms; 0: not read yet. */
    watermark: 0,
    /** Whether the fold has put a campaign into quarantine. */
    leftOut: false,
    isLeading: false,
    lastFold: undefined as LastFold | undefined,
  }))

  function runOne(own: (typeof foldWorkers)[number], signal: AbortSignal): Promise<void> {
    const foldWorker = createFoldWorker({
      ...dependencies,
      ...own.shard,
      signal,
      // Lists show the lowest of all shards.
      rememberWatermark(watermark, shown = 0) {
        own.watermark = Math.max(own.watermark, shown)
        return dependencies.rememberWatermark(watermark, Math.min(...foldWorkers.map(one => one.watermark)))
      },
      untilNoneRuns: () =>
        untilNoFoldRuns(own.shard.tables, own.shard.databases, {
          msMax: stillRunningMsMax,
          monotonicMs: dependencies.monotonicMs,
          async sleep(ms) {
            await dependencies.sleep(ms, signal)
            signal.throwIfAborted()
          },
        }),
      onQuarantine(all, change) {
        own.quarantine = all
        own.leftOut ||= change?.event === 'quarantined'
        // Those of all shards.
        dependencies.onQuarantine?.(
          foldWorkers.flatMap(({ quarantine }) => quarantine),
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
            await dependencies.follow()
            await foldWorker.acquireLeadership()
            // Once for all shards: one process leads them all.
            if (own === foldWorkers[0]) await dependencies.noteLead()
            own.isLeading = true
            firstLedAt ??= dependencies.now()
          },
          /**
           * A fold that succeeds covers all batches that were written before it began, also if there was nothing to fold. But if it
           * left a campaign out, maybe only because the server was busy, the next one tries it alone (quarantine.ts).
           */
          async fold() {
            const written = batchesWritten
            const beganAt = dependencies.monotonicMs()
            own.leftOut = false
            try {
              const report = await foldWorker.fold()
              if (!own.leftOut) own.batchesFolded = written
              own.lastFold = { beganAt, completedAt: dependencies.now() }
              return report
            } catch (error) {
              if (isPause(error) || error instanceof SupersededFoldWorker) own.isLeading = false
              throw error
            }
          },
        },
        notifier: own.notifier,
        rest: own.urgentNotifier.wait,
      },
      signal,
    )
  }

  return {
    /** Folds until the signal aborts. Throws the first failure that lasts; then no fold worker runs any more. */
    run: (signal: AbortSignal) =>
      untilFirstFails(
        foldWorkers.map(own => until => runOne(own, until)),
        signal,
      ),
    /**
     * Tells that this process has appended to the batch log. An urgent batch ends the pause between two folds: a revoked key
     * must not wait for campaigns, and after a backlog there is nothing left to pause for.
     */
    noteBatch({ isUrgent }: { isUrgent: boolean }): void {
      batchesWritten++
      for (const { notifier, urgentNotifier } of foldWorkers) {
        notifier.notify()
        if (isUrgent) urgentNotifier.notify()
      }
    },
    /** Whether this process has the leadership, in all shards. */
    isLeading: () => dependencies.leads() && foldWorkers.every(({ isLeading }) => isLeading),
    /** The last fold that succeeded, also if there was nothing to fold; of the shard that is furthest behind. */
    lastFold(): LastFold | undefined {
      const folds = foldWorkers.map(({ lastFold }) => lastFold)
      const done = folds.filter(fold => fold !== undefined)
      return done.length < folds.length
        ? undefined
        : done.reduce((last, fold) => (fold.beganAt < last.beganAt ? fold : last))
    },
    /** When this process first took the leadership, Unix ms. After a fold that fails it takes it again, which does not count. */
    firstLedAt: () => firstLedAt,
    /** Whether every batch that was noted is folded, in all shards. */
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

/*
 * The fold loop: folds beside the ingest, as long as this process leads (it holds partition 0 of `campaigns`).
 *
 * It folds as soon as there is something to fold. While the projectors keep up, it pauses only briefly, because new
 * events wait for the pause and for the next fold. Under a backlog it uses at most a quarter of the time, so that the
 * ingest goes on, and each fold does more.
 */

export interface FoldLoopDependencies
  extends Pick<Runtime, 'monotonicMs' | 'now' | 'sleep' | 'metrics' | 'logger'> {
  foldWorker: { acquireLeadership(): Promise<unknown>; fold(): Promise<FoldReport | undefined> }
  leads: () => boolean
  /** Is notified when this process appended to the batch log. Batches of other processes are found by polling. */
  notifier: Notifier
  /** Pauses between two folds. Every other pause is a `sleep`: what is urgent must not end a backoff. */
  rest: Notifier['wait']
  /** How often to poll without being notified, ms. */
  idleMsMax: number
  /** How long retryable failures are retried before the loop throws, ms. */
  retryMsMax: number
  /** Names this run of this process. */
  holder: string
}

// Two processes can both lead, for example if projectors of two consumer groups write to the same tables. Without this
// backoff they would keep taking leadership from each other: each waits for the statements of the other, and neither folds.
const supersededBackoffMsMin = 1_000
// A promotion holds the fold for seconds, and all new events wait for its end.
const pausedRetryMs = 200
const supersededBackoffMsMax = 60_000

const restMsMax = 2_000
// Each fold writes a part. Many projectors together could have a batch for every fold, however short it is.
const foldEveryMsMin = 200

/** The fold is held, or stands still until the group has given its partition to a process; maybe to this one. */
function isPause(error: unknown): boolean {
  return error instanceof FoldPaused || error instanceof SupersededAssignment
}

function restMs({ elapsedMs, isOfBacklog }: FoldReport): number {
  const restMs = isOfBacklog ? 3 * elapsedMs : elapsedMs / 4
  return Math.min(Math.max(restMs, foldEveryMsMin - elapsedMs), restMsMax)
}

/** Runs until the signal aborts. Throws a failure that is not retryable, or that lasts longer than `retryMsMax`. */
export async function runFoldLoop(loop: FoldLoopDependencies, signal: AbortSignal): Promise<void> {
  const { foldWorker, notifier, rest, monotonicMs, now, sleep, metrics, logger, holder } = loop
  let isLeader = false
  /** Of this leadership. A pause or another leader ends it: what failed hours ago is another outage. */
  let failingSince: number | undefined
  let supersededBackoffMs = supersededBackoffMsMin
  while (!signal.aborted) {
    try {
      if (!loop.leads()) {
        isLeader = false
        failingSince = undefined
        await notifier.wait(loop.idleMsMax, signal)
        continue
      }
      if (!isLeader) {
        await foldWorker.acquireLeadership()
        logger.info({ holder }, 'this process folds now')
      }
      isLeader = true
      const report = await foldWorker.fold()
      failingSince = undefined
      supersededBackoffMs = supersededBackoffMsMin
      if (!report) {
        await notifier.wait(loop.idleMsMax, signal)
        continue
      }
      metrics.foldSeconds.observe(report.elapsedMs / 1000)
      metrics.foldCampaigns.observe(report.campaigns)
      // A batch that only moves positions, behind the markers of transactions, has no oldest record, but a time far away (batch.ts).
      if (report.oldestAt < now() + dayMs)
        metrics.freshnessSeconds.observe(Math.max(0, now() - report.oldestAt) / 1000)
      logger.debug(report, 'fold')
      await rest(restMs(report), signal)
    } catch (error) {
      // A fold in many pieces ends between two of them.
      if (signal.aborted && error === signal.reason) return
      // The statement may still run, or arrive later. A new epoch makes sure that it writes nothing then.
      isLeader = false
      if (isPause(error)) {
        failingSince = undefined
        await sleep(pausedRetryMs, signal)
      } else if (error instanceof SupersededFoldWorker) {
        failingSince = undefined
        logger.warn(
          { error: error.message },
          'another projector folds these tables; if this goes on, two consumer groups write to the same tables',
        )
        // As long as this process leads, it acquires leadership again.
        await sleep(supersededBackoffMs, signal)
        supersededBackoffMs = Math.min(2 * supersededBackoffMs, supersededBackoffMsMax)
      } else if (error instanceof LogHeld || (error instanceof TablesError && error.retryable)) {
        failingSince ??= monotonicMs()
        if (monotonicMs() - failingSince > loop.retryMsMax) throw error
        metrics.retries.inc({ stage: 'fold' })
        const failed = error instanceof LogHeld ? 'the event log' : 'ClickHouse'
        logger.warn({ stage: 'fold', error: error.message }, `${failed} did not accept it; trying again`)
        await sleep(1_000, signal)
      } else throw error
    }
  }
}
