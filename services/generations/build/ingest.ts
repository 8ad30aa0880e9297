/**
 * Reads the log up to a given position into the new generation. The projector's own loop does the reading. Once the position is reached, its reader pauses, and reading ends when every batch is committed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Delivery, EventReader, PartitionLag, Position } from '../../log/port.ts'
import type { Batch } from '../../projector/ingest/batch.ts'
import { type ProjectorDependencies, runProjector } from '../../projector/projector.ts'
import { createNotifier } from '../../runtime/notifier.ts'
import { onEach } from '../cluster.ts'
import type { RebuildContext } from '../context.ts'

const catchUpRoundsMax = 100
// Once a round took no longer than this, the rest is read while the promotion holds the fold.
const catchUpMs = 2_000
// A round reads what arrived during the round before it. Once the rounds stop getting shorter, more rounds gain nothing.
const gainMin = 0.2
const lookMs = 200
const pausedMs = 10
// An embedded process answers HTTP between two polls, so what a poll brings has to be decoded in a few milliseconds.
const pollRecordsMax = 1_000
// The journal measures a poll that does not fit again and again, so this is seldom reached.
const pollBytesMax = 1_048_576

/** Reads and folds in rounds, until a round was short or no shorter than the one before it. */
export async function catchUp(context: RebuildContext, reader: EventReader): Promise<void> {
  const { monotonicMs } = context
  await inShorterRounds(async () => {
    const startedAt = monotonicMs()
    await ingestToEnd(context, reader)
    await onEach(context.parts, part => part.foldWorker.fold())
    return monotonicMs() - startedAt
  })
}

/**
 * Runs rounds until they gain nothing more: a round was short, or hardly shorter than the one before it. On a busy machine
 * all rounds are long, so a fixed bound alone would repeat them for minutes. `round` returns its time, ms.
 */
export async function inShorterRounds(round: () => Promise<number>): Promise<void> {
  let beforeMs = Number.POSITIVE_INFINITY
  for (let rounds = 0; rounds < catchUpRoundsMax; rounds++) {
    const tookMs = await round()
    if (tookMs < catchUpMs || tookMs > (1 - gainMin) * beforeMs) return
    beforeMs = tookMs
  }
}

/** Reads up to the current end of the log. */
export async function ingestToEnd(context: RebuildContext, reader: EventReader): Promise<void> {
  const { tracker, builder, history, signal } = context
  const target = await history.ends()
  const end = sumOf(target)
  const onLag = (lag: readonly PartitionLag[]) => {
    // It does not hold all partitions yet (see `ingestTo`), so the sums would be too small.
    if (lag.length < target.length) return
    const at = sumOf(lag.map(({ topic, partition, committed }) => ({ topic, partition, next: committed })))
    if (tracker.detail.logStart === null) tracker.note({ logStart: at })
    const start = tracker.detail.logStart ?? at
    const lagRecords = lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
    tracker.progress({ done: at - start, of: Math.max(end, at) - start, unit: 'records', lagRecords })
  }
  const storesRejects = !tracker.detail.request.isDry
  await builder.ingest({ reader, target, storesRejects, onLag }, signal)
}

function sumOf(positions: readonly Position[]): number {
  return positions.reduce((sum, { next }) => sum + next, 0)
}

export interface IngestDependencies extends Omit<ProjectorDependencies, 'reader' | 'events'> {
  reader: EventReader
  onBatch: (batch: Batch) => void
  onRetry: (error: Error) => void
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
  { reader, onBatch, onRetry, onLag, ...dependencies }: IngestDependencies,
  target: readonly Position[],
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted()
  const committed = createNotifier()
  const pausable = pausableReader(reader, committed.notify)
  const done = new AbortController()
  const events = { onBatch, onRetry, onTurn: () => {} }
  const running = runProjector(
    { ...dependencies, reader: pausable.reader, events },
    AbortSignal.any([signal, done.signal]),
  )
  try {
    await watch()
  } finally {
    done.abort()
    await running
  }
  signal.throwIfAborted()

  async function watch(): Promise<void> {
    let isEnded = false
    const end = () => {
      isEnded = true
      committed.notify()
    }
    const ended = running.then(end, end)
    while (!isEnded) {
      // The lag may take as long as the log is away. An interrupted run does not wait for it.
      const lag = await Promise.race([reader.lag(), ended])
      if (!lag) return
      onLag(lag)
      if (isReached(lag, target)) {
        pausable.pause()
        if (pausable.isQuiet()) return done.abort()
      }
      // A commit may be the last one.
      await committed.wait(pausable.isPaused() ? pausedMs : lookMs, done.signal)
    }
  }
}

function isReached(lag: readonly PartitionLag[], target: readonly Position[]): boolean {
  return target.every(({ topic, partition, next }) => {
    const at = lag.find(one => one.topic === topic && one.partition === partition)
    return at !== undefined && at.committed >= next
  })
}

/** A reader that can be paused, and that tells when everything that it delivered is committed. It delivers little at once. */
function pausableReader(reader: EventReader, onCommit: () => void) {
  let isPaused = false
  let isPolling = false
  let interruption = new AbortController()
  let assignment = ''
  const open = new Map<string, number>()
  const nameOf = ({ topic, partition }: Position) => `${topic}/${partition}`

  const wrapped: EventReader = {
    ...reader,
    async poll(bounds, signal): Promise<Delivery> {
      if (isPaused && assignment !== '') {
        await delay(Math.min(bounds.waitMsMax, pausedMs), undefined, { signal }).catch(() => undefined)
        return { records: [], positions: [], assignment }
      }
      isPolling = true
      try {
        const delivery = await reader.poll(
          {
            ...bounds,
            recordsMax: Math.min(bounds.recordsMax, pollRecordsMax),
            bytesMax: Math.min(bounds.bytesMax, pollBytesMax),
          },
          AbortSignal.any([signal, interruption.signal]),
        )
        // What was open under an earlier assignment is delivered again.
        if (delivery.assignment !== assignment) open.clear()
        assignment = delivery.assignment
        for (const position of delivery.positions) open.set(nameOf(position), position.next)
        return delivery
      } finally {
        // Only now: in between, a delivery that is not in `open` yet would look like silence.
        isPolling = false
      }
    },
    async commit(under, positions) {
      try {
        await reader.commit(under, positions)
      } catch (error) {
        // A newer assignment may have delivered records meanwhile. They are still open.
        if (under === assignment) open.clear()
        isPaused = false
        interruption = new AbortController()
        throw error
      }
      for (const position of positions) {
        if ((open.get(nameOf(position)) ?? 0) <= position.next) open.delete(nameOf(position))
      }
      onCommit()
    },
  }
  return {
    reader: wrapped,
    pause: () => {
      isPaused = true
      interruption.abort()
    },
    isPaused: () => isPaused,
    isQuiet: () => open.size === 0 && !isPolling,
  }
}
