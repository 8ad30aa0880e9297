/**
 * Folds beside the ingest, for as long as this process leads (it holds partition 0 of `campaigns`).
 *
 * A fold follows as soon as there is something to fold, but never takes more than half of the time: under a backlog
 * the ingest keeps going, and each fold does more.
 */
import type { Bell } from '../shared/bell.ts'
import { TablesError } from '../shared/tables/port.ts'
import { type Folder, type FoldReport, SupersededFolder } from './folder.ts'
import type { Sleep } from './sleep.ts'

export interface FolderLoop {
  folder: Folder
  leads: () => boolean
  /** Rung when this process appended to the batch log; other processes' batches are found by looking. */
  bell: Bell
  /** How often to look without being rung, ms. */
  idleMsMax: number
  /** How long failures that may pass are tried again before the loop throws, ms. */
  retryMsMax: number
  onFold: (report: FoldReport) => void
  onRetry: (error: Error) => void
  monotonicMs: () => number
  sleep: Sleep
}

/** Runs until the signal aborts. Throws what does not pass within `retryMsMax`. */
export async function runFolder(loop: FolderLoop, signal: AbortSignal): Promise<void> {
  const { folder, bell, monotonicMs, sleep } = loop
  let isHolder = false
  let failingSince: number | undefined
  while (!signal.aborted) {
    try {
      if (!loop.leads()) {
        isHolder = false
        await bell.wait(loop.idleMsMax, signal)
        continue
      }
      if (!isHolder) await folder.takeOver()
      isHolder = true
      const report = await folder.fold()
      failingSince = undefined
      if (!report) {
        await bell.wait(loop.idleMsMax, signal)
        continue
      }
      loop.onFold(report)
      await sleep(Math.min(report.elapsedMs, 2_000), signal)
    } catch (error) {
      if (!canPass(error)) throw error
      failingSince ??= monotonicMs()
      if (monotonicMs() - failingSince > loop.retryMsMax) throw error
      if (error instanceof SupersededFolder) isHolder = false
      loop.onRetry(error)
      await sleep(1_000, signal)
    }
  }
}

function canPass(error: unknown): error is Error {
  return error instanceof SupersededFolder || (error instanceof TablesError && error.retryable)
}
