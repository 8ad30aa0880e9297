/** The swap as a step of a rebuild: retries it if it took too long, and completes it if it was interrupted. */
import { foldWorkerSettings } from '../projector/fold/fold-settings.ts'
import type { EventReader } from '../shared/event-log/port.ts'
import type { RebuildContext } from './context.ts'
import { catchUp, ingestToEnd } from './ingest.ts'
import { countLive, swapTables, untilNoSwapRuns } from './shadow-tables.ts'
import { FoldPauseLost, readNextStamp, runSwap, stampChanged } from './swap.ts'
import { verifyTouched } from './verification.ts'

const attemptsMax = 5

/** Throws the error of the last attempt. */
export async function swapInTime(context: RebuildContext, reader: EventReader): Promise<void> {
  const { databases, history, tracker, shadowProjector, withdrawals, config, logger } = context
  for (let attempt = 1; ; attempt++) {
    // The new epoch is above the stamps of an earlier attempt.
    await shadowProjector.foldWorker.acquireLeadership()
    shadowProjector.takeTouched()
    await withdrawals.carry(context.signal)
    await catchUp(context, reader)
    const { added = 0, different = 0, inMotion = 0 } = tracker.detail.differences ?? {}
    const areMany = added + different + inMotion > (context.stampedDuringPauseMax ?? 10_000)
    const unstampedSince = areMany ? await readNextStamp(context.tables, databases) : null
    try {
      const report = await runSwap(
        { ...context, tables: context.tablesOnAllCores, settings: foldWorkerSettings(config) },
        {
          hasManyChanges: unstampedSince !== null,
          async catchUp() {
            await ingestToEnd(context, reader, 'shadow')
            // What is deleted later than this is in the log behind its end, and is read after the swap.
            const withdrawn = await withdrawals.carryRest()
            await shadowProjector.foldWorker.fold()
            await verifyTouched(context, withdrawn)
          },
          async beforeSwap(tableIds) {
            context.signal.throwIfAborted()
            const positions = await history.livePositions()
            await tracker.enter('swapping', { tableIds, positions, unstampedSince })
          },
        },
      )
      logger.info({ databases, ...report }, 'the tables are swapped')
      return
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || attempt === attemptsMax || (await isSwapped(context)))
        throw error
      logger.warn({ error: error.message, attempt }, 'the swap is tried again')
    }
  }
}

/** Runs after a swap that changed many rows. */
export async function stampWhatChanged(context: RebuildContext): Promise<void> {
  const { tracker, config, logger } = context
  for (let attempt = 1; tracker.detail.unstampedSince !== null; attempt++) {
    try {
      await stampChanged(
        { ...context, tables: context.tablesOnAllCores, settings: foldWorkerSettings(config) },
        tracker.detail.unstampedSince,
      )
      tracker.note({ unstampedSince: null })
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || attempt === attemptsMax) throw error
      logger.warn({ error: error.message, attempt }, 'the changed rows are stamped again')
    }
  }
}

/** Whether the rebuilt tables are live. Completes a swap that was interrupted halfway. */
export async function isSwapped({
  tables,
  tablesWithoutRetry,
  databases,
  tracker,
  monotonicMs,
  sleep,
}: RebuildContext): Promise<boolean> {
  const { tableIds } = tracker.detail
  if (!tableIds) return false
  // The swap statement of a killed run may still be running.
  await untilNoSwapRuns(tables, databases, { monotonicMs, sleep })
  if ((await countLive(tables, databases, tableIds)) === 0) return false
  await swapTables(tablesWithoutRetry, databases, tableIds, { monotonicMs, sleep })
  return true
}
