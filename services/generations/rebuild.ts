/**
 * A rebuild makes the next generation of the tables. It reads the whole history into databases of its own with the projector's loop, folds
 * them once, verifies and compares them. Then one row makes it the current generation, and the projectors and query processes follow it
 * (promote.ts). The generation from before is kept: a rollback brings it up to date and makes it current in the same way.
 *
 * Promises (in addition to those in promote.ts and attempts.ts):
 * - It can be killed at any time and continues where it was. Its positions stand with its rows, and it records each step before the next
 *   one begins. begin.ts decides whether it continues or begins again.
 * - It promotes nothing that differs from its ledger, or that contains less than the current generation.
 * - What is deleted or hidden in the current generation does not come back, whatever history it reads (withdrawals.ts).
 * - If it is given up before the promotion, everything is as if it had never run. But a restore that it noticed stays noted.
 * How it fails: it throws the reason and records it in the generation log. Retryable failures are retried for `retryMsMax`.
 */
import type { EventReader } from '../log/port.ts'
import { FoldPaused, SupersededFoldWorker } from '../projector/fold/fold-epochs.ts'
import type { FoldProgress } from '../projector/fold/line.ts'
import { messageOf } from '../runtime/message-of.ts'
import { patientTables } from '../tables/clickhouse/patient.ts'
import { readCurrent, writeRow } from '../tables/generation-log.ts'
import { AttemptLost, untilEnded } from './attempts.ts'
import { beginRebuild } from './begin.ts'
import {
  createShards,
  dropGeneration,
  enter,
  generationLogOf,
  makeGeneration,
  onEach,
  onHalfTheCores,
  type RebuildContext,
  type RebuildDependencies,
  showCurrent,
  wholeOf,
} from './context.ts'
import { readDifferences, sumDifferences } from './differences.ts'
import { catchUp, createBuildPositions, ingestToEnd } from './ingest.ts'
import { promote } from './promote.ts'
import { consumerOf, createTracker, type RebuildRequest, type RebuildState } from './rebuild-log.ts'
import { verifyAll } from './verification.ts'
import { lookAt } from './withdrawals.ts'

/**
 * Begins the rebuild or continues the open one, and runs it to its end. Throws why it could not begin, `VerificationFailed`,
 * `AttemptLost`, the signal's reason, or what log and tables throw.
 */
export async function runRebuild(
  dependencies: RebuildDependencies,
  request: RebuildRequest,
  signal: AbortSignal,
): Promise<Pick<RebuildState, 'id' | 'detail'>> {
  const { config, run, monotonicMs, sleep, logger } = dependencies
  const onRetry = (error: Error) => logger.warn({ error: error.message }, 'trying again')
  const patience = { retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX, monotonicMs, sleep, onRetry }
  const tables = await onHalfTheCores(patientTables(dependencies.tables, patience))
  const place = { ...dependencies, tables }
  const found = await generationLogOf(place)
  const generationLog = { ...found, tables: patientTables(found.tables as typeof tables, patience) }
  const from = await readCurrent(generationLog.tables, generationLog.base)
  const state = await beginRebuild({ ...place, generationLog, from }, request)
  const tracker = createTracker(generationLog, state, dependencies)
  const shards = await createShards(dependencies, { ...state, from }, patience)
  const rebuilt = wholeOf(place, state.generation)
  const parts = { ...place, generationLog, from, rebuilt, shards, tracker }
  const context: RebuildContext = {
    ...parts,
    positions: createBuildPositions(parts),
    // A process that was taken for dead, and wakes up, ends.
    signal: AbortSignal.any([signal, tracker.signal]),
  }
  try {
    await carryThrough(context)
    await tracker.close()
    return { id: tracker.id, detail: tracker.detail }
  } catch (cause) {
    // A later attempt has taken its fold, or a projector that had given it up, or a statement of its own that came twice.
    const isTaken = cause instanceof SupersededFoldWorker || cause instanceof FoldPaused
    const error = isTaken ? new AttemptLost(takenFold, { cause }) : cause
    await tracker.close(messageOf(error))
    // Whoever waits for its hold goes on at once.
    await writeRow(generationLog, { kind: 'given up', attempt: state.attempt, run }).catch(onRetry)
    throw error
  }
}

const takenFold =
  'its fold was taken: it was silent for so long that it was given up, or another process continues it. It promoted nothing. If pledgeview ' +
  'rebuild status shows no process at work, run the same command again'

async function carryThrough(context: RebuildContext): Promise<void> {
  const { tracker, history, from, generationLog } = context
  const { generation, attempt } = tracker
  const { isDry } = tracker.detail.request
  if (generation !== from) {
    await enter(context, 'preparing')
    // Also when it continues: if the program was upgraded since they were made, they may need new columns.
    await makeGeneration(context, generation)
    const reader = await history.open(consumerOf(tracker), context.positions)
    try {
      await build(context, reader)
      if (!isDry) await promote(context, reader)
    } finally {
      await reader.close()
    }
  }
  if (isDry) {
    await dropGeneration(context, attempt, generation)
  } else {
    await untilEnded(generationLog.tables, generationLog.base, context)
    await showCurrent(context)
  }
  await history.forget(consumerOf(tracker))
  await tracker.enter(isDry ? 'compared' : 'rebuilt')
}

/** Reads, folds, catches up and verifies. Skips what is already done. */
async function build(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, signal, shards } = context
  await enter(context, 'reading log')
  await ingestToEnd(context, reader)
  await onEach(shards, async shard => {
    await shard.foldWorker.acquireLeadership()
    // Also when it continues: the log may have forgotten deletions while it did not run, or while the previous tables were kept.
    await shard.carryWithdrawals(signal)
  })
  if (!tracker.detail.isFolded) {
    await enter(context, 'folding')
    await foldWhole(context)
    tracker.detail.isFolded = true
  }
  await enter(context, 'catching up')
  await onEach(shards, async shard => {
    shard.compared = await lookAt(shard.tables, shard.rebuilt)
  })
  await catchUp(context, reader)
  await enter(context, 'verifying')
  await verifyAll(context, reader)
  const differences = await onEach(shards, shard => readDifferences(shard))
  tracker.detail.differences = sumDifferences(differences)
}

async function foldWhole(context: RebuildContext): Promise<void> {
  const { tracker, signal, shards } = context
  const progress = new Map<unknown, FoldProgress>()
  await onEach(shards, shard =>
    shard.foldWorker.foldAll(ofShard => {
      signal.throwIfAborted()
      progress.set(shard, ofShard)
      const all = [...progress.values()]
      const sum = (amountOf: (one: FoldProgress) => number) =>
        all.reduce((total, one) => total + amountOf(one), 0)
      tracker.progress({ done: sum(({ done }) => done), of: sum(({ of }) => of), unit: 'folds' })
    }),
  )
}
