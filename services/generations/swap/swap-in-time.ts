/** The swap as a step of a rebuild: retries it if it took too long, and completes it if it was interrupted. */

import type { EventReader } from '../../log/port.ts'
import { foldWorkerSettings } from '../../projector/fold/fold-settings.ts'
import { catchUp, ingestToEnd } from '../build/ingest.ts'
import { beginEra } from '../build/positions.ts'
import { countLive, swapTables, untilNoSwapRuns } from '../build/shadow-tables.ts'
import { verifyTouched } from '../compare/verification.ts'
import { openParts, type RebuildContext } from '../context.ts'
import type { RebuildPart } from '../parts.ts'
import { swapOf, withSwap } from '../rebuild-log.ts'
import { FoldPauseLost, type HeldFoldDependencies } from './held-fold.ts'
import { readNextStamp, stampChanged } from './stamp-changed.ts'
import { runSwap } from './swap.ts'

const attemptsMax = 5

/** Swaps the parts that are not swapped yet, one after the other (parts.ts). */
export async function swapParts(context: RebuildContext, reader: EventReader): Promise<void> {
  for (const part of openParts(context)) {
    await swapInTime(context, part, reader)
    part.isSwapped = true
    await stampWhatChanged(context, part)
  }
}

/** Throws the error of the last attempt. */
async function swapInTime(context: RebuildContext, part: RebuildPart, reader: EventReader): Promise<void> {
  const { tracker, logger } = context
  const { databases } = part
  for (let attempt = 1; ; attempt++) {
    // The new epoch is above the stamps of an earlier attempt.
    await part.foldWorker.acquireLeadership()
    await part.withdrawals.carry(context.signal)
    await catchUp(context, reader)
    await verifyTouched(context, part, [])
    const { added = 0, different = 0, inMotion = 0 } = tracker.detail.differences ?? {}
    const areMany = added + different + inMotion > (context.stampedDuringPauseMax ?? 10_000)
    const unstampedSince = areMany ? await readNextStamp(part.tables, databases) : null
    try {
      const report = await runSwap(swapDependencies(context, part), {
        hasManyChanges: unstampedSince !== null,
        async catchUp() {
          await ingestToEnd(context, reader)
          // What is deleted later than this is in the log behind its end, and is read after the swap.
          const withdrawn = await part.withdrawals.carryRest()
          await part.foldWorker.fold()
          await verifyTouched(context, part, withdrawn)
        },
        async beforeSwap(tableIds) {
          context.signal.throwIfAborted()
          await beginEra(context, part, reader.log)
          const swap = withSwap(tracker.detail, part.name, { tableIds, unstampedSince })
          await tracker.enter('swapping', swap)
        },
      })
      logger.info({ databases, shard: part.name, ...report }, 'the tables are swapped')
      return
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || attempt === attemptsMax || (await isSwapped(context, part)))
        throw error
      logger.warn({ error: error.message, attempt }, 'the swap is tried again')
    }
  }
}

/** Runs after a swap that changed many rows. */
export async function stampWhatChanged(context: RebuildContext, part: RebuildPart): Promise<void> {
  const { tracker, logger } = context
  for (let attempt = 1; ; attempt++) {
    const { tableIds, unstampedSince } = swapOf(tracker.detail, part.name)
    if (unstampedSince === null) return
    try {
      await stampChanged(swapDependencies(context, part), unstampedSince)
      tracker.note(withSwap(tracker.detail, part.name, { tableIds, unstampedSince: null }))
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || attempt === attemptsMax) throw error
      logger.warn({ error: error.message, attempt }, 'the changed rows are stamped again')
    }
  }
}

function swapDependencies(context: RebuildContext, part: RebuildPart): HeldFoldDependencies {
  const { run, monotonicMs, sleep, random } = context
  const { databases, tablesOnAllCores: tables, tablesWithoutRetry } = part
  const settings = foldWorkerSettings(context.config)
  return { tables, tablesWithoutRetry, databases, run, settings, monotonicMs, sleep, random }
}

/** Whether the rebuilt tables are live. Completes a swap that was interrupted halfway. */
export async function isSwapped(
  { tracker, monotonicMs, sleep }: Pick<RebuildContext, 'tracker' | 'monotonicMs' | 'sleep'>,
  { name, databases, tables, tablesWithoutRetry }: RebuildPart,
): Promise<boolean> {
  const { tableIds } = swapOf(tracker.detail, name)
  if (!tableIds) return false
  // The swap statement of a killed run may still be running.
  await untilNoSwapRuns(tables, databases, { monotonicMs, sleep })
  if ((await countLive(tables, databases, tableIds)) === 0) return false
  await swapTables(tablesWithoutRetry, databases, tableIds, { monotonicMs, sleep })
  return true
}
