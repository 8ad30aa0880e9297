/**
 * The projector's loop: consume -> learn schemas -> decode -> collect -> ledger -> batch log -> commit.
 *
 * Promises: offsets are committed only after ClickHouse has confirmed the rows and the log keeps the rejects, so a
 * kill at any point only repeats work, and repeated work changes nothing. ClickHouse away: the batch is retried with
 * backoff, consumption is held back (at most one batch is collected meanwhile), and after `retryMsMax` it fails. A schema
 * registry away: the same, for the records whose schemas it would have to tell; what came before them is written.
 * How it fails: it throws, and the process that runs it ends or says so; nothing is skipped.
 */
import { type Delivery, type EventReader, SupersededAssignment } from '../shared/event-log/port.ts'
import { nextTurn } from '../shared/next-turn.ts'
import type { SchemaRegistry } from '../shared/schema-registry.ts'
import { SchemaRegistryError } from '../shared/schema-registry-answers.ts'
import { type Databases, type Tables, TablesError } from '../shared/tables/port.ts'
import { addDelivery, type Batch, batchLogInsert, emptyBatch, ledgerInserts } from './batch.ts'
import { type Decode, schemaIdsOf } from './decode.ts'
import { type RejectGate, TooManyRejects } from './reject-gate.ts'
import type { Sleep } from './sleep.ts'

export interface ProjectorSettings {
  batchRecordsMax: number
  batchBytesMax: number
  /** How long a batch collects after its first record. */
  batchMsMax: number
  /** How long one wait for records lasts; an idle loop turns this often. */
  idleMsMax: number
  /** How long a batch, or a question to the schema registry, is retried before the projector gives up. */
  retryMsMax: number
}

/** What the loop tells those who watch it. */
export interface ProjectorEvents {
  onBatch(batch: Batch, timing: { collectMs: number; writeMs: number }): void
  onRetry(error: Error, attempt: number): void
  /** The loop turned, with or without records. */
  onTurn(): void
}

export interface ProjectorDependencies {
  reader: EventReader
  tables: Tables
  databases: Databases
  decode: Decode
  /** Where `decode` has its schemas from, unless they are the fixed ones. */
  schemaRegistry?: Pick<SchemaRegistry, 'known' | 'learn'> | undefined
  hashBacker: (backerId: string) => string
  gate: RejectGate
  /** Names this run of this process in the batch log. */
  projector: string
  settings: ProjectorSettings
  events: ProjectorEvents
  /** Milliseconds, monotonic. */
  monotonicMs: () => number
  sleep: Sleep
  /** 0 to 1, for the jitter of retries. */
  random: () => number
}

// Small enough that decoding one slice does not hold up the HTTP side of an embedded process.
const sliceRecordsMax = 2_000

/**
 * Runs until the signal aborts; resolves once what was collected is written and committed.
 * Throws `TooManyRejects`, or the last error of a batch that could not be written, or of schemas that could not be
 * learned, in time.
 */
export async function runProjector(dependencies: ProjectorDependencies, signal: AbortSignal): Promise<void> {
  const { events, gate, monotonicMs } = dependencies
  let sequence = 0
  // One batch is written while the next is collected: reading and ClickHouse each keep a core busy.
  let writing: Promise<void> = Promise.resolve()
  let carried: Delivery | undefined
  try {
    while (!signal.aborted) {
      const startedAt = monotonicMs()
      const collected = await collect(dependencies, signal, carried)
      carried = collected.carried
      const { batch } = collected
      events.onTurn()
      await writing
      if (batch.records === 0 && batch.positions.size === 0) continue
      if (!gate.admit({ records: batch.records, rejects: batch.rejects.length })) throw tooManyRejects(batch)
      const collectMs = monotonicMs() - startedAt
      sequence++
      writing = write(dependencies, batch, sequence, collectMs, signal)
      // It is awaited in the next turn; until then a failure must not count as unhandled.
      writing.catch(() => {})
    }
  } finally {
    await writing
  }
}

/**
 * Collects until a bound is reached. A delivery of a newer assignment waits for the next batch, and so does one whose
 * schemas have to be learned first: a registry that is away must not hold up what is collected already.
 */
async function collect(
  dependencies: ProjectorDependencies,
  signal: AbortSignal,
  carried: Delivery | undefined,
): Promise<{ batch: Batch; carried: Delivery | undefined }> {
  const { reader, decode, hashBacker, settings, monotonicMs } = dependencies
  let delivery = carried ?? (await reader.poll(pollBounds(settings, 0, 0, settings.idleMsMax), signal))
  const batch = emptyBatch(delivery.assignment)
  if (!(await learnSchemas(dependencies, delivery, signal))) return { batch, carried: undefined }
  const deadline = monotonicMs() + settings.batchMsMax
  for (;;) {
    addDelivery(batch, delivery, decode, hashBacker)
    const waitMs = deadline - monotonicMs()
    const isFull = batch.records >= settings.batchRecordsMax || batch.bytes >= settings.batchBytesMax
    if (isFull || waitMs <= 0 || batch.records === 0 || signal.aborted) return { batch, carried: undefined }
    await nextTurn()
    delivery = await reader.poll(pollBounds(settings, batch.records, batch.bytes, waitMs), signal)
    const isOfBatch = delivery.assignment === batch.assignment && isDecodable(dependencies, delivery)
    if (!isOfBatch) return { batch, carried: delivery }
  }
}

function isDecodable({ schemaRegistry }: ProjectorDependencies, { records }: Delivery): boolean {
  return !schemaRegistry || [...schemaIdsOf(records)].every(id => schemaRegistry.known(id) !== undefined)
}

/** Makes a delivery decodable. Resolves with false where the signal aborted before the registry told its schemas. */
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
    bytesMax: settings.batchBytesMax - bytes,
    waitMsMax,
  }
}

/** Ledger, batch log, rejects, offsets: in this order, each durable before the next. */
async function write(
  dependencies: ProjectorDependencies,
  batch: Batch,
  sequence: number,
  collectMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { tables, databases, reader, projector, events, monotonicMs } = dependencies
  const startedAt = monotonicMs()
  await retried(dependencies, signal, async () => {
    await Promise.all(ledgerInserts(batch, databases).map(insert => tables.insert(insert)))
    await tables.insert(batchLogInsert(batch, databases, { projector, sequence }))
  })
  if (batch.rejects.length > 0) await reader.reject(batch.rejects)
  try {
    await reader.commit(batch.assignment, [...batch.positions.values()])
  } catch (error) {
    // Another process has the partitions now and repeats this batch, which changes nothing.
    if (!(error instanceof SupersededAssignment)) throw error
  }
  events.onBatch(batch, { collectMs, writeMs: monotonicMs() - startedAt })
}

/** Tries again what may yet succeed, with doubling waits up to 5 s, for at most `retryMsMax`. */
async function retried(
  { settings, events, monotonicMs, sleep, random }: ProjectorDependencies,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const startedAt = monotonicMs()
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const isOutage = error instanceof TablesError || error instanceof SchemaRegistryError
      if (!isOutage || !error.retryable || signal.aborted || monotonicMs() - startedAt > settings.retryMsMax)
        throw error
      events.onRetry(error, attempt)
      const waitMs = Math.min(5_000, 100 * 2 ** Math.min(attempt, 10)) * (0.5 + random() / 2)
      await sleep(waitMs, signal)
    }
  }
}

function tooManyRejects(batch: Batch): TooManyRejects {
  const [first] = batch.rejects
  const example = first
    ? ` The first: ${first.record.topic}/${first.record.partition} offset ${first.record.offset}: ${first.reason}.`
    : ''
  return new TooManyRejects(
    `Too many of the recent records are rejects (${batch.rejects.length} of ${batch.records} in this batch), so the ` +
      `projector stopped before it moved past them.${example} Repair the producer or the schema and start again; to ` +
      'let them go to the rejects instead, start with PLEDGEVIEW_REJECT_SHARE_MAX=1.',
  )
}
