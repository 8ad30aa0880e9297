/**
 * The projector's loop: consume -> learn schemas -> decode -> collect -> ledger and rejects -> batch log -> positions -> commit.
 *
 * It is at-least-once and idempotent. Positions are written only after ClickHouse has confirmed the rows and the rejects. So a kill at any point only repeats work, and repeated work changes nothing.
 * If ClickHouse is unavailable, the batch is retried with backoff and consumption waits: at most one more batch is collected
 * meanwhile. After `retryMsMax` it fails. If the schema registry is unavailable, the same happens to the records whose
 * schemas are unknown; the records before them are written.
 * How it fails: it throws, and the process that runs it ends or reports it. No record is skipped.
 */
import { type Delivery, type EventReader, SupersededAssignment } from '../log/port.ts'
import { SchemaRegistryError } from '../log/registry/answers.ts'
import type { SchemaRegistry } from '../log/registry/schema-registry.ts'
import { outagePauses, retry } from '../runtime/async/retry.ts'
import { yieldToEventLoop } from '../runtime/async/sleep.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { type BatchTrace, beginBatch, decodeTraced, inBatch } from '../runtime/traces.ts'
import { type Tables, TablesError } from '../tables/port.ts'
import { loggedReason, type StoreRejects } from '../tables/rejects.ts'
import { isOfBacklog } from './fold/fold-progress.ts'
import type { HashBacker } from './ingest/backer-hash.ts'
import { addDelivery, type Batch, batchLogInsert, emptyBatch, ledgerInserts } from './ingest/batch.ts'
import { type Decode, schemaIdsOf } from './ingest/decode.ts'
import type { RejectCircuitBreaker } from './ingest/reject-circuit-breaker.ts'
import type { Positions } from './positions/positions.ts'
import type { ProjectorSettings } from './settings.ts'

/** What the loop reports. */
export interface ProjectorEvents {
  /** The batch is written next. The one before is written. */
  onWrite?(batch: Batch): void
  /** The fold can begin: the batch is in the ledger and in the batch log, and its positions are in the tables. */
  onLogged?(batch: Batch): void
  onBatch(batch: Batch, timing: { writeMs: number }): void
  onRetry(error: Error, attempt: number): void
  /** The loop made a turn, with or without records. */
  onTurn(): void
}

export interface ProjectorDependencies extends Pick<Runtime, 'monotonicMs' | 'now' | 'sleep' | 'random'> {
  reader: EventReader
  tables: Tables
  /** Default: rejects are not kept, because this run changes nothing. */
  storeRejects?: StoreRejects
  positions: Pick<Positions, 'store' | 'storeRest' | 'restampBefore' | 'databasesOf'>
  decode: Decode
  /** The source of `decode`'s schemas, unless they are the fixed ones. */
  schemaRegistry?: Pick<SchemaRegistry, 'known' | 'learn'> | undefined
  hashBacker: HashBacker
  circuitBreaker: RejectCircuitBreaker
  /** Names this run of this process in the batch log. */
  projector: string
  settings: ProjectorSettings
  events: ProjectorEvents
}

// Decoding a slice blocks the event loop. A slice is small, so that an embedded process still answers HTTP in time.
const sliceRecordsMax = 2_000
const sliceBytesMax = 4 * 1024 ** 2
// In a backlog, throughput counts more than freshness: a batch may collect this many times `batchMsMax`.
const backlogFactor = 4
// If the log delivers nothing for this long, it has been read to its end. A Kafka fetch takes less.
const backlogWaitMsMax = 25
// How often a batch that is due looks whether the batch before is written.
const busyWaitMsMax = 10

/**
 * Runs until the signal aborts. Resolves when everything that was collected is written and committed.
 * Throws if too many records were rejected, or the last error if a batch could not be written, or its schemas could not be learned, in time.
 */
export async function runProjector(dependencies: ProjectorDependencies, signal: AbortSignal): Promise<void> {
  const { events, circuitBreaker, positions, monotonicMs, now } = dependencies
  // In each generation, the batches of this run are counted by themselves.
  const sequences = new Map<string, number>()
  // One batch is written while the next is collected: reading and ClickHouse each keep a core busy.
  let writing: Promise<void> = Promise.resolve()
  // Nobody knows yet what waits in the log.
  const pace: Pace = { endedAt: Number.NEGATIVE_INFINITY, isBehind: true, isWriting: false }
  let carried: Delivery | undefined
  try {
    while (!signal.aborted) {
      const collected = await collect(dependencies, signal, { carried, pace })
      carried = collected.carried
      const { batch } = collected
      // A turn without records is no batch: the record that ends a quiet time may come right after it.
      if (batch.records > 0) pace.endedAt = monotonicMs()
      pace.isBehind = !batch.isLogDry && isOfBacklog(batch.oldestAt, now())
      events.onTurn()
      await writing
      if (batch.records === 0 && batch.positions.size === 0) {
        await storeRest(positions)
        continue
      }
      const recent = circuitBreaker({ records: batch.records, rejects: batch.rejects.length })
      // A batch without rejects never stops the loop, whatever came before it.
      if (recent && batch.rejects.length > 0) throw tooManyRejects(batch, recent)
      pace.isWriting = true
      events.onWrite?.(batch)
      const counts = { 'pledgeview.records': batch.records, 'pledgeview.rejects': batch.rejects.length }
      const written = () => write(dependencies, batch, sequences, signal)
      writing = inBatch(collected.trace, counts, written).finally(() => {
        pace.isWriting = false
      })
      // The next turn awaits it. Until then a failure must not count as an unhandled rejection.
      writing.catch(() => {})
    }
  } finally {
    await writing
  }
  await storeRest(positions)
}

/** Writes the positions that no batch has written. If ClickHouse is unavailable, the next turn does it, or the records are read again. */
async function storeRest(positions: ProjectorDependencies['positions']): Promise<void> {
  try {
    await positions.storeRest()
  } catch (error) {
    if (!isPassingFailure(error)) throw error
  }
}

/** What the end of a batch depends on, beside its size. */
interface Pace {
  /** When the batch before ended, monotonic ms. */
  endedAt: number
  /**
   * Whether it left more of a backlog in the log. Age alone is no backlog: producers may set any time, and clocks differ. Batches would end
   * with each of their records.
   */
  isBehind: boolean
  /** Whether it is still being written. */
  isWriting: boolean
}

/**
 * Collects until a limit is reached. A delivery of a newer assignment waits for the next batch. So does a delivery whose
 * schemas have to be learned first: an unavailable registry must not delay what is already collected.
 */
async function collect(
  dependencies: ProjectorDependencies,
  signal: AbortSignal,
  { carried, pace }: { carried: Delivery | undefined; pace: Pace },
): Promise<{ batch: Batch; trace?: BatchTrace | undefined; carried: Delivery | undefined }> {
  const { reader, decode, hashBacker, settings, monotonicMs, now } = dependencies
  let delivery = carried ?? (await reader.poll(pollBounds(settings, 0, 0, settings.idleMsMax), signal))
  const batch = emptyBatch(delivery.assignment, hashBacker)
  if (!(await learnSchemas(dependencies, delivery, signal))) return { batch, carried: undefined }
  const startedAt = monotonicMs()
  const trace = beginBatch()
  for (;;) {
    const { records } = delivery
    decodeTraced(trace, records, () => addDelivery(batch, delivery, decode))
    const isBacklog = pace.isBehind && isOfBacklog(batch.oldestAt, now())
    batch.isEndOfBacklog = isBacklog && batch.isLogDry
    const waitMs =
      startedAt + collectMsOf(settings, { isBacklog, sinceLastMs: startedAt - pace.endedAt }) - monotonicMs()
    const isFull = batch.records >= settings.batchRecordsMax || batch.bytes >= settings.batchBytesMax
    const isDue = waitMs <= 0 || batch.isEndOfBacklog
    // A batch that could not be written yet takes more records instead of waiting.
    const isOver = isFull || batch.records === 0 || (isDue && !pace.isWriting)
    if (isOver || signal.aborted) return { batch, trace, carried: undefined }
    await yieldToEventLoop()
    const pollMs = isDue ? busyWaitMsMax : isBacklog ? Math.min(backlogWaitMsMax, waitMs) : waitMs
    delivery = await reader.poll(pollBounds(settings, batch.records, batch.bytes, pollMs), signal)
    const isOfBatch = delivery.assignment === batch.assignment && isDecodable(dependencies, delivery)
    if (!isOfBatch) return { batch, trace, carried: delivery }
  }
}

/**
 * How long a batch collects. A record that comes after a quiet time waits only briefly. At a steady rate there is one batch
 * in `batchMsMax`, so that ClickHouse does not have to merge more parts than it would have to otherwise.
 */
export function collectMsOf(
  { batchMsMax, batchMsMin }: Pick<ProjectorSettings, 'batchMsMin' | 'batchMsMax'>,
  { isBacklog, sinceLastMs }: { isBacklog: boolean; sinceLastMs: number },
): number {
  if (isBacklog) return backlogFactor * batchMsMax
  return Math.min(Math.max(batchMsMax - sinceLastMs, batchMsMin), batchMsMax)
}

function isDecodable({ schemaRegistry }: ProjectorDependencies, { records }: Delivery): boolean {
  return !schemaRegistry || [...schemaIdsOf(records)].every(id => schemaRegistry.known(id) !== undefined)
}

/** Learns the schemas of a delivery. Resolves with false if the signal aborted before the registry answered. */
async function learnSchemas(
  dependencies: ProjectorDependencies,
  { records }: Delivery,
  signal: AbortSignal,
): Promise<boolean> {
  const { schemaRegistry } = dependencies
  if (!schemaRegistry) return true
  const schemaIds = schemaIdsOf(records)
  try {
    await retried(dependencies, signal, () => schemaRegistry.learn(schemaIds, signal))
    return true
  } catch (error) {
    if (signal.aborted && error instanceof SchemaRegistryError) return false
    throw error
  }
}

function pollBounds(settings: ProjectorSettings, records: number, bytes: number, waitMsMax: number) {
  return {
    recordsMax: Math.min(sliceRecordsMax, settings.batchRecordsMax - records),
    bytesMax: Math.min(sliceBytesMax, settings.batchBytesMax - bytes),
    waitMsMax,
  }
}

/** Writes ledger and rejects, batch log, positions, and the group's offsets, in this order. Each is durable before the next. */
async function write(
  dependencies: ProjectorDependencies,
  batch: Batch,
  sequences: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const { tables, reader, storeRejects, positions, projector, events, monotonicMs } = dependencies
  const databases = positions.databasesOf(batch.assignment)
  // Another assignment or generation has come. Its positions are those of the tables, so these records are read again.
  if (!databases) return
  const sequence = (sequences.get(databases.ledger) ?? 0) + 1
  sequences.set(databases.ledger, sequence)
  const moved = [...batch.positions.values()]
  const startedAt = monotonicMs()
  const isWritten = await retried(dependencies, signal, async () => {
    if (!positions.databasesOf(batch.assignment)) return false
    await Promise.all(ledgerInserts(batch, databases).map(insert => tables.insert(insert)))
    await storeRejects?.(reader.log, batch.rejects)
    const restampBefore = positions.restampBefore(batch.assignment, moved)
    await tables.insert(
      batchLogInsert(batch, databases, { projector, sequence, log: reader.log, restampBefore }),
    )
    await positions.store(batch.assignment, moved)
    return true
  })
  if (!isWritten) return
  events.onLogged?.(batch)
  try {
    await reader.commit(batch.assignment, moved)
  } catch (error) {
    // Another process has the partitions now. It repeats this batch, which changes nothing.
    if (!(error instanceof SupersededAssignment)) throw error
  }
  events.onBatch(batch, { writeMs: monotonicMs() - startedAt })
}

/** Retries while ClickHouse or the schema registry is unavailable, for at most `retryMsMax`. */
function retried<T>(
  { settings, events, monotonicMs, sleep, random }: ProjectorDependencies,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const policy = {
    isRetryable: isPassingFailure,
    msMax: settings.retryMsMax,
    ...outagePauses,
    onRetry: events.onRetry,
  }
  return retry(work, policy, { monotonicMs, sleep, random, signal })
}

function isPassingFailure(error: unknown): boolean {
  return (error instanceof TablesError || error instanceof SchemaRegistryError) && error.retryable
}

function tooManyRejects(batch: Batch, recent: { records: number; rejects: number }): Error {
  const [first] = batch.rejects
  const example = first
    ? ` The first: ${first.record.topic}/${first.record.partition} offset ${first.record.offset}: ${loggedReason(first.reason)}.`
    : ''
  return new Error(
    `Too many of the recent records were rejected (${recent.rejects} of ${recent.records}, with earlier runs; ` +
      `${batch.rejects.length} of ${batch.records} in this batch), so the run stopped before it moved past them.${example} ` +
      'If a schema was missing, register it and start again. If the records are wrong, repair the producer and start ' +
      'once with PLEDGEVIEW_REJECT_SHARE_MAX=1: these records then go to the dead-letter queue, and later projectors do ' +
      'not count them. A rebuild reads them again, and needs the setting each time.',
  )
}
