/**
 * Reads on in the log up to a place, into the ledger of one generation or another, and stops with nothing under way: by
 * the projector's own loop, on a reader that is held back once the place is reached.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Batch } from '../projector/batch.ts'
import type { ProjectorDependencies } from '../projector/projector.ts'
import { runProjector } from '../projector/projector.ts'
import type { Delivery, EventReader, PartitionLag, Position } from '../shared/event-log/port.ts'

export interface IngestDependencies extends Omit<ProjectorDependencies, 'reader' | 'events'> {
  reader: EventReader
  onBatch: (batch: Batch) => void
  onRetry: (error: Error) => void
  /** Where the reader stands, some times a second. */
  onLag: (lag: readonly PartitionLag[]) => void
}

const lookMs = 200
const heldBackMs = 10

/** The ends of the reader's partitions, which are all: no other reads for the same rebuild. */
export async function endsOf(reader: EventReader): Promise<Position[]> {
  return (await reader.lag()).map(({ topic, partition, end }) => ({ topic, partition, next: end }))
}

/**
 * Resolves when all before `target` is in the ledger and committed; something beyond it may be too. Rejects with what the
 * loop throws, or the signal's reason.
 */
export async function ingestTo(
  { reader, onBatch, onRetry, onLag, ...dependencies }: IngestDependencies,
  target: readonly Position[],
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted()
  const held = holdableReader(reader)
  const done = new AbortController()
  const events = { onBatch, onRetry, onTurn: () => {} }
  const running = runProjector(
    { ...dependencies, reader: held.reader, events },
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
    const ended = running.then(
      () => true,
      () => true,
    )
    for (;;) {
      const lag = await reader.lag()
      onLag(lag)
      if (isReached(lag, target)) {
        held.holdBack()
        if (held.isQuiet()) return done.abort()
      }
      const pause = held.isHeldBack() ? heldBackMs : lookMs
      if (await Promise.race([ended, delay(pause, false)])) return
    }
  }
}

function isReached(lag: readonly PartitionLag[], target: readonly Position[]): boolean {
  return target.every(({ topic, partition, next }) => {
    const at = lag.find(one => one.topic === topic && one.partition === partition)
    return at !== undefined && at.committed >= next
  })
}

/** A reader that can be told to hand out nothing more, and says when all that it handed out is committed. */
function holdableReader(reader: EventReader) {
  let isHeldBack = false
  let isPolling = false
  let interruption = new AbortController()
  let assignment = ''
  const open = new Map<string, number>()
  const nameOf = ({ topic, partition }: Position) => `${topic}/${partition}`

  const holdable: EventReader = {
    ...reader,
    async poll(bounds, signal): Promise<Delivery> {
      if (isHeldBack && assignment !== '') {
        await delay(Math.min(bounds.waitMsMax, heldBackMs), undefined, { signal }).catch(() => undefined)
        return { records: [], positions: [], assignment }
      }
      isPolling = true
      const delivery = await reader
        .poll(bounds, AbortSignal.any([signal, interruption.signal]))
        .finally(() => {
          isPolling = false
        })
      // What an assignment before this one had open comes again.
      if (delivery.assignment !== assignment) open.clear()
      assignment = delivery.assignment
      for (const position of delivery.positions) open.set(nameOf(position), position.next)
      return delivery
    },
    async commit(under, positions) {
      try {
        await reader.commit(under, positions)
      } catch (error) {
        open.clear()
        isHeldBack = false
        interruption = new AbortController()
        throw error
      }
      for (const position of positions) {
        if ((open.get(nameOf(position)) ?? 0) <= position.next) open.delete(nameOf(position))
      }
    },
  }
  return {
    reader: holdable,
    holdBack: () => {
      isHeldBack = true
      interruption.abort()
    },
    isHeldBack: () => isHeldBack,
    isQuiet: () => open.size === 0 && !isPolling,
  }
}
