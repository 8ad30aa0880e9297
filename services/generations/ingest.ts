/**
 * Reads the log into the new generation: the projector's own loop on other databases. It uses a separate consumer group and reads all
 * partitions, so it takes none from the projectors and does not change their lag. It is stopped once it has passed a position.
 */
import { randomUUID } from 'node:crypto'
import { type EventReader, lagRecords, type PartitionLag, type Position } from '../log/port.ts'
import { createDecoder } from '../projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../projector/ingest/reject-circuit-breaker.ts'
import {
  createPositions,
  type Positions,
  readPositions,
  startOfLog,
  writePositions,
} from '../projector/positions/positions.ts'
import { noticeRestore } from '../projector/positions/restore.ts'
import { type ProjectorDependencies, runProjector } from '../projector/projector.ts'
import { projectorSettings } from '../projector/settings.ts'
import { createNotifier } from '../runtime/async/notifier.ts'
import { readCurrent } from '../tables/generation-log.ts'
import { createRejectStore, loggedReason } from '../tables/rejects.ts'
import { onEach, type RebuildContext, wholeOf } from './context.ts'

// Once a round took no longer than this, the rest is read while the promotion holds the fold.
const catchUpMs = 2_000
// A round reads what arrived during the round before it. Once the rounds stop getting shorter, more rounds gain nothing.
const gainMin = 0.2
const lookMs = 200
// Rejects that no table keeps are named in the log.
const namedMax = 10

/**
 * Reads and folds in rounds, until they gain nothing more: a round was short, or hardly shorter than the one before it. On a busy machine
 * all rounds are long, so a fixed bound alone would repeat them for minutes.
 */
export async function catchUp(context: RebuildContext, reader: EventReader): Promise<void> {
  const { monotonicMs } = context
  let beforeMs = Number.POSITIVE_INFINITY
  for (;;) {
    const startedAt = monotonicMs()
    await ingestToEnd(context, reader)
    await onEach(context.shards, shard => shard.foldWorker.fold())
    const tookMs = monotonicMs() - startedAt
    if (tookMs < catchUpMs || tookMs > (1 - gainMin) * beforeMs) return
    beforeMs = tookMs
  }
}

/** Reads up to the current end of the log. */
export async function ingestToEnd(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, history, signal } = context
  const target = await history.ends()
  let start: number | undefined
  const onLag = (lag: readonly PartitionLag[]) => {
    // It does not hold all partitions yet (see `ingestTo`), so the sums would be too small.
    if (lag.length < target.length) return
    const at = lag.reduce((sum, { committed }) => sum + committed, 0)
    const left = lagRecords(lag)
    start ??= at
    tracker.progress({ done: at - start, of: at - start + left, unit: 'records', lagRecords: left })
  }
  await ingestTo({ ...loopOf(context), reader }, target, signal, onLag)
}

function loopOf(context: RebuildContext): Omit<ProjectorDependencies, 'reader'> {
  const { tables, rebuilt, config, run, tracker, logger, now } = context
  const keptMs = config.PLEDGEVIEW_REJECT_RETENTION_MS
  const store = createRejectStore({ tables, databases: rebuilt, now, keptMs })
  let named = 0
  return {
    ...context,
    // The table belongs to no generation, and has the rejects that the projectors have stored already. A dry run stores none.
    ...(!tracker.detail.request.isDry && {
      // An older reject has left the table, settled or not. It would come back as an open one.
      storeRejects(log, rejects) {
        const { old = [], recent = [] } = Object.groupBy(rejects, ({ record }) =>
          record.appendedAt <= now() - keptMs ? 'old' : 'recent',
        )
        for (const { record, reason } of old.slice(0, namedMax - named)) {
          const { topic, partition, offset } = record
          logger.warn(
            { topic, partition, offset, reason: loggedReason(reason) },
            'rejected, and older than rejects are kept: not stored again',
          )
          named++
        }
        return store(log, recent)
      },
    }),
    decode: createDecoder(context.schemaRegistry?.known),
    circuitBreaker: createRejectCircuitBreaker(config),
    // Each stretch counts its batches from 1, so it needs its own name in the batch log.
    projector: `${run}-${randomUUID()}`,
    settings: projectorSettings(config),
    events: {
      onBatch({ records, rejects }) {
        tracker.detail.records += records
        tracker.detail.rejects += rejects.length
      },
      onRetry: error => logger.warn({ error: error.message }, 'trying again'),
      onTurn: () => {},
    },
  }
}

/**
 * Resolves when everything before `target` is in the ledger and committed. It may have read more than that. Rejects with
 * what the loop throws, or with the signal's reason. Calls `onLag` several times a second with the reader's position.
 *
 * `target` has to name all partitions of the log, not only those that the reader holds. Usually it holds all. But if the
 * answer to its join was lost, it joins again as a second member. For some seconds the group still gives partitions to the
 * first member, which no process runs.
 */
export async function ingestTo(
  dependencies: ProjectorDependencies,
  target: readonly Position[],
  signal: AbortSignal,
  onLag: (lag: readonly PartitionLag[]) => void,
): Promise<void> {
  signal.throwIfAborted()
  const { reader, events } = dependencies
  // A loop that was stopped has read more than it has written. That is read again.
  await reader.restart()
  const committed = createNotifier()
  const onBatch: typeof events.onBatch = (...written) => {
    events.onBatch(...written)
    committed.notify()
  }
  const done = new AbortController()
  const both = AbortSignal.any([signal, done.signal])
  const running = runProjector({ ...dependencies, events: { ...events, onBatch } }, both)
  const ended = running.catch(() => {})
  try {
    for (;;) {
      // The lag may take as long as the log is away. An interrupted run does not wait for it.
      const lag = await Promise.race([ended, reader.lag()])
      if (!lag) break
      onLag(lag)
      if (isReached(lag, target)) break
      await Promise.race([ended, committed.wait(lookMs, done.signal)])
    }
  } finally {
    done.abort()
    await running
  }
  signal.throwIfAborted()
}

function isReached(lag: readonly PartitionLag[], target: readonly Position[]): boolean {
  return target.every(({ topic, partition, next }) => {
    const at = lag.find(one => one.topic === topic && one.partition === partition)
    return at !== undefined && at.committed >= next
  })
}

/* How far the log is read for a new generation. This is kept in the tables of that generation, as the projectors keep theirs. */

/**
 * A new generation is read from the start of the log. A restore of the current one is noticed here, too, and written down: the promotion
 * writes a watermark, and then no projector could notice it.
 */
export function createBuildPositions(context: Omit<RebuildContext, 'positions' | 'signal'>): Positions {
  const { tables, rebuilt, shards, from, history, generationLog, tracker, logger, now } = context
  const warn = (message: string) => logger.warn(message)
  const placesOf = (side: 'live' | 'rebuilt') =>
    shards.map(shard => ({ tables: shard.tables, databases: shard[side] }))
  const live = { tables, databases: wholeOf(context, from), shards: placesOf('live'), now, warn }
  return createPositions({
    ...{ databases: rebuilt, shards: placesOf('rebuilt'), now, warn },
    async notice({ shards: places }, state) {
      // A dry run hides no restore. And a process that was taken for dead may wake up when its tables are the previous ones.
      const { isDry } = tracker.detail.request
      if (!isDry && (await readCurrent(generationLog.tables, generationLog.base)) === from) {
        await noticeRestore(live, { ...state, remembered: await history.remembered() })
      }
      const { ofLog } = await readPositions(places, state.log)
      const first = state.partitions.map(at => startOfLog(state.log, at, now()))
      if (ofLog.size === 0) await writePositions(places, first)
      return { stored: await readPositions(places, state.log) }
    },
  })
}
