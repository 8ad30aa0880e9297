/**
 * The fold loop: folds beside the ingest, as long as this process leads (it holds partition 0 of `campaigns`).
 *
 * It folds as soon as there is something to fold. While the projectors keep up, it pauses only briefly, because new
 * events wait for the pause and for the next fold. Under a backlog it uses at most a quarter of the time, so that the
 * ingest goes on, and each fold does more.
 */
import type { Notifier } from '../../runtime/async/notifier.ts'
import type { Sleep } from '../../runtime/async/sleep.ts'
import { TablesError } from '../../tables/port.ts'
import { FoldPaused, SupersededFoldWorker } from './fold-epochs.ts'
import { isOfBacklog } from './fold-progress.ts'
import type { FoldReport } from './fold-worker.ts'

export interface FoldLoopDependencies {
  foldWorker: { acquireLeadership(): Promise<unknown>; fold(): Promise<FoldReport | undefined> }
  leads: () => boolean
  /** Is notified when this process appended to the batch log. Batches of other processes are found by polling. */
  notifier: Notifier
  /** How often to poll without being notified, ms. */
  idleMsMax: number
  /** How long retryable failures are retried before the loop throws, ms. */
  retryMsMax: number
  onFold: (report: FoldReport) => void
  onRetry: (error: Error) => void
  /** Another fold worker took over. As long as this process leads, it acquires leadership again, with growing backoff. */
  onSuperseded: (error: SupersededFoldWorker) => void
  /** This process acquired leadership. */
  onLeadership: () => void
  monotonicMs: () => number
  /** Unix ms. */
  now: () => number
  sleep: Sleep
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

function restMs({ elapsedMs, oldestAt }: FoldReport, now: number): number {
  const restMs = isOfBacklog(oldestAt, now) ? 3 * elapsedMs : elapsedMs / 4
  return Math.min(Math.max(restMs, foldEveryMsMin - elapsedMs), restMsMax)
}

/** Runs until the signal aborts. Throws a failure that is not retryable, or that lasts longer than `retryMsMax`. */
export async function runFoldLoop(loop: FoldLoopDependencies, signal: AbortSignal): Promise<void> {
  const { foldWorker, notifier, monotonicMs, sleep } = loop
  let isLeader = false
  let failingSince: number | undefined
  let supersededBackoffMs = supersededBackoffMsMin
  while (!signal.aborted) {
    try {
      if (!loop.leads()) {
        isLeader = false
        await notifier.wait(loop.idleMsMax, signal)
        continue
      }
      if (!isLeader) {
        await foldWorker.acquireLeadership()
        loop.onLeadership()
      }
      isLeader = true
      const report = await foldWorker.fold()
      failingSince = undefined
      supersededBackoffMs = supersededBackoffMsMin
      if (!report) {
        await notifier.wait(loop.idleMsMax, signal)
        continue
      }
      loop.onFold(report)
      await sleep(restMs(report, loop.now()), signal)
    } catch (error) {
      // A fold in many pieces ends between two of them.
      if (signal.aborted && error === signal.reason) return
      if (error instanceof FoldPaused) {
        isLeader = false
        await sleep(pausedRetryMs, signal)
        continue
      }
      if (error instanceof SupersededFoldWorker) {
        isLeader = false
        loop.onSuperseded(error)
        await sleep(supersededBackoffMs, signal)
        supersededBackoffMs = Math.min(2 * supersededBackoffMs, supersededBackoffMsMax)
        continue
      }
      if (!(error instanceof TablesError && error.retryable)) throw error
      // The statement may still run, or arrive later. A new epoch makes sure that it writes nothing then.
      isLeader = false
      failingSince ??= monotonicMs()
      if (monotonicMs() - failingSince > loop.retryMsMax) throw error
      loop.onRetry(error)
      await sleep(1_000, signal)
    }
  }
}
