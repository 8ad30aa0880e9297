/**
 * The fold beside the ingest: a folder for each shard of the tables, all of them at work while this process leads.
 *
 * On one server there is one shard, the tables themselves. On a cluster a shard holds whole campaigns, so its folder
 * works there alone; every folder follows the batches of all projectors and finds those of its campaigns in them.
 */
import { createBell } from '../shared/bell.ts'
import type { Shard } from '../shared/tables/port.ts'
import { createFolder, type FolderDependencies, type FolderSettings, type FoldReport } from './folder.ts'
import { runFolder } from './run-folder.ts'
import { sleep } from './sleep.ts'

export interface FoldingDependencies extends Pick<FolderDependencies, 'respectsHold' | 'afterHold'> {
  shards: readonly Shard[]
  /** Names this run of this process; unique. */
  holder: string
  settings: FolderSettings
  leads: () => boolean
  /** How often to look for batches of other processes, ms. */
  idleMsMax: number
  /** How long failures that may pass are tried again before folding fails, ms. */
  retryMsMax: number
  onFold: (report: FoldReport) => void
  onRetry: (error: Error) => void
  onSuperseded: (error: Error) => void
  onTakeOver: () => void
  monotonicMs: () => number
  /** Unix ms. */
  now: () => number
  random: () => number
}

export interface Folding {
  /** Folds until the signal aborts. Throws what does not pass in time; then no folder runs any more. */
  run(signal: AbortSignal): Promise<void>
  /** This process has appended to the batch log. */
  noteBatch(batch: { hasKeys: boolean }): void
  /** Whether every batch that was noted is folded, in all shards. */
  isDone(): boolean
}

export function createFolding(dependencies: FoldingDependencies): Folding {
  let batchesWritten = 0
  const folders = dependencies.shards.map(shard => ({
    shard,
    bell: createBell(),
    // Ends the folder's pause: a key that was revoked must not wait for campaigns to have their turn.
    keysBell: createBell(),
    // Unknown until the first fold: a run that was killed may have left batches that it committed and did not fold.
    batchesFolded: undefined as number | undefined,
  }))

  function runOne(own: (typeof folders)[number], signal: AbortSignal): Promise<void> {
    const folder = createFolder({ ...dependencies, ...own.shard, sleep })
    return runFolder(
      {
        ...dependencies,
        folder: {
          takeOver: folder.takeOver,
          /** A fold, successful or with nothing to do, covers what was written before it looked. */
          async fold() {
            const written = batchesWritten
            const report = await folder.fold()
            own.batchesFolded = written
            return report
          },
        },
        bell: own.bell,
        sleep: (ms, until = signal) => own.keysBell.wait(ms, until),
      },
      signal,
    )
  }

  return {
    run: signal =>
      untilFirstFails(
        folders.map(own => until => runOne(own, until)),
        signal,
      ),
    noteBatch({ hasKeys }) {
      batchesWritten++
      for (const { bell, keysBell } of folders) {
        bell.ring()
        if (hasKeys) keysBell.ring()
      }
    },
    isDone: () => folders.every(({ batchesFolded }) => batchesFolded === batchesWritten),
  }
}

/** Runs all side by side. The first that fails ends the others; its error is the one that counts. */
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
