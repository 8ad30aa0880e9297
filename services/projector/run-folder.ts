/**
 * Folds beside the ingest, for as long as this process leads (it holds partition 0 of `campaigns`).
 *
 * A fold follows as soon as there is something to fold. While the projectors keep up it rests little, because what comes
 * meanwhile waits for the rest and for the next fold; under a backlog it takes no more than half of the time, so that
 * the ingest goes on, and each fold does more.
 */
import type { Bell } from '../shared/bell.ts'
import { TablesError } from '../shared/tables/port.ts'
import { FoldHeld, SupersededFolder } from './fold-epochs.ts'
import type { FoldReport } from './folder.ts'
import type { Sleep } from './sleep.ts'

export interface FolderLoop {
  folder: { takeOver(): Promise<unknown>; fold(): Promise<FoldReport | undefined> }
  leads: () => boolean
  /** Rung when this process appended to the batch log; other processes' batches are found by looking. */
  bell: Bell
  /** How often to look without being rung, ms. */
  idleMsMax: number
  /** How long failures that may pass are tried again before the loop throws, ms. */
  retryMsMax: number
  onFold: (report: FoldReport) => void
  onRetry: (error: Error) => void
  /** Another process folds. This one takes over again, later and later, for as long as it leads all the same. */
  onSuperseded: (error: SupersededFolder) => void
  /** This process is the one that folds now. */
  onTakeOver: () => void
  monotonicMs: () => number
  /** Unix ms. */
  now: () => number
  sleep: Sleep
}

// Two that both lead, as projectors of two groups do on the same tables, would else take the fold from each other for
// ever: each take-over waits for the statements of the one before, and nothing would be folded.
const standBackMsMin = 1_000
// A hold lasts for seconds, and all that comes meanwhile waits for its end.
const heldPauseMs = 200
const standBackMsMax = 60_000

// Events that waited longer than this before they were folded are of a backlog.
const backlogMs = 10_000
const restMsMax = 2_000

function restMs({ elapsedMs, oldestAt }: FoldReport, now: number): number {
  const isBacklog = now - oldestAt > backlogMs
  return Math.min(isBacklog ? elapsedMs : elapsedMs / 4, restMsMax)
}

/** Runs until the signal aborts. Throws what does not pass within `retryMsMax`. */
export async function runFolder(loop: FolderLoop, signal: AbortSignal): Promise<void> {
  const { folder, bell, monotonicMs, sleep } = loop
  let isHolder = false
  let failingSince: number | undefined
  let standBackMs = standBackMsMin
  while (!signal.aborted) {
    try {
      if (!loop.leads()) {
        isHolder = false
        await bell.wait(loop.idleMsMax, signal)
        continue
      }
      if (!isHolder) {
        await folder.takeOver()
        loop.onTakeOver()
      }
      isHolder = true
      const report = await folder.fold()
      failingSince = undefined
      standBackMs = standBackMsMin
      if (!report) {
        await bell.wait(loop.idleMsMax, signal)
        continue
      }
      loop.onFold(report)
      await sleep(restMs(report, loop.now()), signal)
    } catch (error) {
      if (error instanceof FoldHeld) {
        isHolder = false
        await sleep(heldPauseMs, signal)
        continue
      }
      if (error instanceof SupersededFolder) {
        isHolder = false
        loop.onSuperseded(error)
        await sleep(standBackMs, signal)
        standBackMs = Math.min(2 * standBackMs, standBackMsMax)
        continue
      }
      if (!(error instanceof TablesError && error.retryable)) throw error
      failingSince ??= monotonicMs()
      if (monotonicMs() - failingSince > loop.retryMsMax) throw error
      loop.onRetry(error)
      await sleep(1_000, signal)
    }
  }
}
