/**
 * Reads the log into the new generation: the projector's own loop on other databases. It uses a separate consumer group and reads all
 * partitions, so it takes none from the projectors and does not change their lag. It is stopped once it has passed a position.
 */
import { randomUUID } from 'node:crypto'
import { type EventReader, type LogState, lagRecords, type PartitionLag, type Position } from '../log/port.ts'
import { readLongRuns, readPending } from '../projector/fold/fold-progress.ts'
import { createDecoder } from '../projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../projector/ingest/reject-circuit-breaker.ts'
import { createPositions, noticeRestore, type Positions } from '../projector/positions/positions.ts'
import {
  readPositions,
  type StoredPosition,
  writePositions,
} from '../projector/positions/stored-positions.ts'
import { type ProjectorDependencies, runProjector } from '../projector/projector.ts'
import { projectorSettings } from '../projector/settings.ts'
import { createNotifier } from '../runtime/async/notifier.ts'
import type { Shard } from '../tables/port.ts'
import { createRejectStore, loggedReason, type Reject } from '../tables/rejects.ts'
import { onEach, type RebuildContext } from './context.ts'

const catchUpRoundsMax = 100
// Once a round took no longer than this, the rest is read while the promotion holds the fold.
const catchUpMs = 2_000
// A round reads what arrived during the round before it. Once the rounds stop getting shorter, more rounds gain nothing.
const gainMin = 0.2
const lookMs = 200
// Rejects that no table keeps are named in the log.
const namedMax = 10

/** Reads and folds in rounds, until a round was short or no shorter than the one before it. */
export async function catchUp(context: RebuildContext, reader: EventReader): Promise<void> {
  const { monotonicMs } = context
  await inShorterRounds(async () => {
    const startedAt = monotonicMs()
    await ingestToEnd(context, reader)
    await onEach(context.shards, shard => shard.foldWorker.fold())
    return monotonicMs() - startedAt
  })
}

/**
 * Runs rounds until they gain nothing more: a round was short, or hardly shorter than the one before it. On a busy machine
 * all rounds are long, so a fixed bound alone would repeat them for minutes. `round` returns its time, ms.
 */
async function inShorterRounds(round: () => Promise<number>): Promise<void> {
  let beforeMs = Number.POSITIVE_INFINITY
  for (let rounds = 0; rounds < catchUpRoundsMax; rounds++) {
    const tookMs = await round()
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
  await ingestTo({ ...loopOf(context), reader, onLag }, target, signal)
}

function loopOf(context: RebuildContext): Omit<ProjectorDependencies, 'reader'> {
  const { tables, rebuilt, config, run, tracker, logger, now } = context
  const keptMs = config.PLEDGEVIEW_REJECT_RETENTION_MS
  const store = createRejectStore({ tables, databases: rebuilt, now, keptMs })
  let named = 0
  return {
    ...context,
    databases: rebuilt,
    // The table belongs to no generation, and has the rejects that the projectors have stored already. A dry run stores none.
    ...(!tracker.detail.request.isDry && {
      // An older reject has left the table, settled or not. It would come back as an open one.
      storeRejects(log, rejects) {
        const isOld = ({ record }: Reject) => record.appendedAt <= now() - keptMs
        const old = rejects.filter(isOld)
        for (const { record, reason } of old.slice(0, namedMax - named)) {
          const { topic, partition, offset } = record
          logger.warn(
            { topic, partition, offset, reason: loggedReason(reason) },
            'rejected, and older than rejects are kept: not stored again',
          )
          named++
        }
        return store(
          log,
          rejects.filter(reject => !isOld(reject)),
        )
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

export interface IngestDependencies extends ProjectorDependencies {
  /** Called several times a second with the reader's position. */
  onLag: (lag: readonly PartitionLag[]) => void
}

/**
 * Resolves when everything before `target` is in the ledger and committed. It may have read more than that. Rejects with
 * what the loop throws, or with the signal's reason.
 *
 * `target` has to name all partitions of the log, not only those that the reader holds. Usually it holds all. But if the
 * answer to its join was lost, it joins again as a second member. For some seconds the group still gives partitions to the
 * first member, which no process runs.
 */
export async function ingestTo(
  { onLag, ...dependencies }: IngestDependencies,
  target: readonly Position[],
  signal: AbortSignal,
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
  const ended = running.then(
    () => undefined,
    () => undefined,
  )
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
 * A new generation is read from the start of the log. `live`: the current generation. A restore of it is noticed here, too, and written down:
 * the promotion writes a watermark, and then no projector could notice it.
 */
export function createBuildPositions({
  tables,
  rebuilt,
  shards,
  live,
  history,
  now,
  warn,
  noticesRestore,
}: Pick<RebuildContext, 'tables' | 'rebuilt' | 'shards' | 'history' | 'now'> & {
  live: Pick<Shard, 'tables' | 'databases'>
  warn: (message: string) => void
  noticesRestore: () => Promise<boolean>
}): Positions {
  const places = shards.map(shard => ({ tables: shard.tables, databases: shard.rebuilt }))
  const positions = createPositions({ tables, databases: rebuilt, shards: places, now, warn })
  return {
    ...positions,
    async find(state) {
      if (await noticesRestore()) {
        const remembered = await history.remembered()
        const liveShards = shards.map(shard => ({ tables: shard.tables, databases: shard.live }))
        await noticeRestore({ ...live, shards: liveShards, now, warn }, { ...state, remembered })
      }
      const { ofLog } = await readPositions(places, state.log)
      if (ofLog.size === 0) await writePositions(places, firstPositions(state))
      return positions.find(state)
    },
  }

  function firstPositions({ log, partitions }: LogState): StoredPosition[] {
    const none = { log, era: 0, lastAt: 0, againUntil: 0, lostWatermark: 0 }
    return partitions.map(({ topic, partition, low }) => ({
      ...{ ...none, topic, partition, next: low, readUntil: now() },
    }))
  }
}

/**
 * Whether the current generation was restored from a backup, and has not folded everything yet that it has to read again. It is asked while
 * its fold is held.
 */
export async function isBeingRestored(
  { shards }: Pick<RebuildContext, 'shards'>,
  log: string,
): Promise<boolean> {
  const answers = await onEach(shards, async ({ tables, live }) => {
    const { ofLog } = await readPositions([{ tables, databases: live }], log)
    if ([...ofLog.values()].some(({ next, againUntil }) => next < againUntil)) return true
    return Boolean((await readPending(tables, live, await readLongRuns(tables, live)))?.isAgain)
  })
  return answers.includes(true)
}

/** The new generation knows every deletion that the current one knows, so it is read as far in time. */
export async function carryReadUntil({ shards }: Pick<RebuildContext, 'shards'>, log: string): Promise<void> {
  for (const { tables, live, rebuilt } of shards) {
    const [before, after] = await Promise.all(
      [live, rebuilt].map(databases => readPositions([{ tables, databases }], log)),
    )
    const rows = [...(after?.ofLog ?? [])].flatMap(([name, row]) => {
      const was = before?.ofLog.get(name)
      if (!was) return []
      const readUntil = Math.max(was.readUntil, row.readUntil)
      return [{ ...row, readUntil }]
    })
    await writePositions([{ tables, databases: rebuilt }], rows)
  }
}
