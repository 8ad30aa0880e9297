/**
 * A rebuild is a blue/green replay. It reads the whole history into the shadow tables, a second set of the same tables, and
 * verifies and compares them. Then it swaps the live and the shadow tables, with their positions: the projectors read on where the
 * new tables are. The API and the projector use the live tables all the time. After the swap, the shadow tables are the previous
 * ones. A rollback is the same act: it reads on where the previous tables are, folds them, and swaps. On a cluster, all of this
 * happens for each shard (parts.ts).
 *
 * Promises (in addition to those in swap.ts):
 * - It can be killed at any time and continues where it was. Its positions stand with the rows, and it records each step in the
 *   rebuild log before the next step begins. lease.ts decides whether it continues or begins again.
 * - It swaps in no tables that differ from their ledger, or that contain less than the live tables.
 * - What the live tables have deleted or hidden does not come back, whatever history it reads (withdrawals.ts).
 * - If it is given up before the swap, the live tables are as if it had never run.
 * How it fails: it throws the reason and records it in the rebuild log. Retryable failures are retried for `retryMsMax`.
 */

import type { EventReader } from '../log/port.ts'
import type { FoldProgress } from '../projector/fold/line.ts'
import { createMisplacedReporter } from '../projector/misplaced-records.ts'
import { writeNote } from '../projector/projector-log.ts'
import { projectorSettings } from '../projector/service.ts'
import { messageOf } from '../runtime/message-of.ts'
import { sleep } from '../runtime/sleep.ts'
import { checkDisk, estimateDisk } from './build/disk.ts'
import { onHalfTheCores } from './build/half-the-cores.ts'
import { catchUp, ingestToEnd } from './build/ingest.ts'
import { createRebuildPositions } from './build/positions.ts'
import { createShadowProjector } from './build/shadow-projector.ts'
import { createShadow, dropShadow } from './build/shadow-tables.ts'
import { withRetry } from './build/with-retry.ts'
import { onEach } from './cluster.ts'
import { readClock, readDifferences, sumDifferences } from './compare/differences.ts'
import { verifyAll } from './compare/verification.ts'
import {
  enter,
  enterBeforeSwap,
  openParts,
  type RebuildContext,
  type RebuildDependencies,
} from './context.ts'
import { acquireLease, begunAgain, isOutdated } from './lease.ts'
import { clusterOf, createParts } from './parts.ts'
import {
  consumerOf,
  isWorking,
  latestRebuild,
  type RebuildDetail,
  type RebuildRequest,
} from './rebuild-log.ts'
import { giveUp } from './rebuilds.ts'
import { releaseLeftPause } from './swap/held-fold.ts'
import { isSwapped, stampWhatChanged, swapParts } from './swap/swap-in-time.ts'
import { revokePermits } from './swap/swap-permit.ts'
import { createTracker } from './tracker.ts'

export interface RebuildResult {
  id: string
  detail: RebuildDetail
}

/** The rebuild was given up on request. Nothing is left of it. */
export class RebuildAborted extends Error {
  override name = 'RebuildAborted'
}

/**
 * Begins the rebuild or continues the open one, and runs it to its end. Throws `RebuildInProgress`, `RebuildRefused`,
 * `VerificationFailed`, `RebuildAborted`, the signal's reason, or what log and tables throw.
 */
export async function runRebuild(
  dependencies: RebuildDependencies,
  request: RebuildRequest,
  signal: AbortSignal,
): Promise<RebuildResult> {
  const { databases, config, run, monotonicMs, onProgress, logger } = dependencies
  const onRetry = (error: Error) => logger.warn({ error: error.message }, 'trying again')
  const retrySettings = { retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX, monotonicMs, sleep, onRetry }
  const tables = await onHalfTheCores(withRetry(dependencies.tables, retrySettings))
  const parts = await createParts(dependencies, retrySettings)
  const cluster = clusterOf(dependencies, parts)
  await checkBeforehand({ tables, databases, parts }, request)
  const state = await acquireLease({ ...dependencies, tables, cluster, sleep }, request)
  const aborting = new AbortController()
  const onAbort = () => aborting.abort(new RebuildAborted('the rebuild was given up'))
  const tracker = createTracker({ tables, databases, state, onAbort, onProgress, monotonicMs })
  // A rebuild reads the whole history, so it finds those that the projectors read before they looked for them.
  const misplaced = createMisplacedReporter({
    warn: (found, message) => logger.warn(found, message),
    write: note => writeNote(tables, databases, run, note),
    onFailure: onRetry,
    monotonicMs,
  })
  const positions = createRebuildPositions({ ...dependencies, tables, parts, tracker })
  const shadowProjector = createShadowProjector({
    ...dependencies,
    tables,
    cluster,
    positions,
    projectorSettings: projectorSettings(config),
    sleep,
    onRetry,
    onRecords({ records, rejects, misplaced: found }) {
      misplaced.note(found)
      tracker.note({ records: tracker.detail.records + records, rejects: tracker.detail.rejects + rejects })
    },
    onCampaigns(ids) {
      for (const { touched } of parts) touched.note(ids)
    },
  })
  const context: RebuildContext = {
    ...dependencies,
    tables,
    cluster,
    parts,
    tracker,
    positions,
    shadowProjector,
    sleep,
    signal: AbortSignal.any([signal, aborting.signal]),
  }
  try {
    await carryThrough(context, isOutdated(state))
    await tracker.close()
    return { id: tracker.id, detail: tracker.detail }
  } catch (error) {
    const isAborted = aborting.signal.aborted && !signal.aborted
    await tracker.close(isAborted ? undefined : messageOf(error))
    if (isAborted) await giveUp(context, { id: tracker.id, run, detail: tracker.detail })
    throw error
  } finally {
    await misplaced.close()
  }
}

/** `mayBeginAgain`: what an earlier run has read counts only if tables are swapped. */
async function carryThrough(context: RebuildContext, mayBeginAgain: boolean): Promise<void> {
  const { tracker, history, parts, run } = context
  const consumer = consumerOf(tracker.id)
  await onEach(parts, async part => {
    const { tables, databases } = part
    // The process that worked on it before may only stand still.
    await revokePermits(tables, databases)
    part.isSwapped = await isSwapped(context, part)
    await releaseLeftPause(tables, databases, run)
  })
  const areOpen = openParts(context).length
  if (mayBeginAgain && areOpen === parts.length) await tracker.enter('preparing', begunAgain)
  if (!tracker.isPast('preparing')) await prepare(context, consumer)
  // If the program was upgraded since the shadow tables were made, they may need new columns.
  else if (areOpen > 0) await createShadow(context, tracker.id)
  if (areOpen > 0) {
    tracker.waitFor(history.waitsFor)
    const reader = await history.open(consumer, context.positions)
    try {
      await build(context, reader)
      if (!tracker.detail.request.isDry) await swapParts(context, reader)
    } finally {
      await reader.close()
    }
  }
  // Those that a killed run has swapped.
  for (const part of parts) await stampWhatChanged(context, part)
  if (tracker.detail.request.isDry) await dropShadow(context)
  await history.forget(consumer)
  await tracker.enter(tracker.detail.request.isDry ? 'compared' : 'rebuilt')
}

/** Checks what can be checked before an open rebuild exists. */
async function checkBeforehand(
  { tables, databases, parts }: Pick<RebuildContext, 'tables' | 'databases' | 'parts'>,
  request: RebuildRequest,
): Promise<void> {
  const latest = await latestRebuild(tables, databases)
  if (request.kind === 'rollback' || request.ignoresDisk || (latest && isWorking(latest))) return
  for (const part of parts) checkDisk(await estimateDisk(part.tables, part.databases))
}

async function prepare(context: RebuildContext, consumer: string): Promise<void> {
  const { history, tracker } = context
  await enter(context, 'preparing')
  if (tracker.detail.request.kind === 'rebuild') await dropShadow(context)
  await createShadow(context, tracker.id)
  // If this rebuild begins again, its consumer may have a part of the log.
  await history.forget(consumer)
}

/** Reads, folds, catches up and verifies. Skips what is already done. */
async function build(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, signal } = context
  const parts = openParts(context)
  if (!tracker.isPast('reading log')) {
    await enter(context, 'reading log')
    await ingestToEnd(context, reader)
  }
  await onEach(parts, async part => {
    await part.foldWorker.acquireLeadership()
    // Also when it continues: the log may have forgotten deletions while it did not run, or while the previous tables were kept.
    await part.withdrawals.carry(signal)
  })
  if (!tracker.isPast('folding')) {
    await enter(context, 'folding')
    await foldWhole(context)
  }
  await enterBeforeSwap(context, 'catching up')
  const since = await onEach(parts, part => readClock(part.tables))
  await catchUp(context, reader)
  await enterBeforeSwap(context, 'verifying')
  await verifyAll(context, reader)
  // Those of a shard that is swapped already are in the log.
  if (parts.length < context.parts.length) return
  const differences = await onEach(parts, part =>
    readDifferences(part.tables, part.databases, since[parts.indexOf(part)] ?? ''),
  )
  tracker.note({ differences: sumDifferences(differences) })
}

async function foldWhole(context: RebuildContext): Promise<void> {
  const { tracker, signal, parts } = context
  const progress = new Map<unknown, FoldProgress>()
  await onEach(parts, part =>
    part.foldWorker.foldAll(ofPart => {
      signal.throwIfAborted()
      progress.set(part, ofPart)
      const all = [...progress.values()]
      const sum = (amountOf: (one: FoldProgress) => number) =>
        all.reduce((total, one) => total + amountOf(one), 0)
      tracker.progress({ done: sum(({ done }) => done), of: sum(({ of }) => of), unit: 'folds' })
    }),
  )
}
