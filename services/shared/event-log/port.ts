/**
 * The event log port: what the projector and the commands need of Kafka, and of the journal that stands in for it.
 *
 * Promises that every implementation keeps (test/integration/event-log.conformance.ts):
 * - records of one partition are delivered in offset order, and nothing below a committed position is lost;
 * - nothing is committed but what `commit` was given, and a commit of a superseded assignment commits nothing;
 * - a record that was appended (the promise of `append` resolved) survives a crash of the process;
 * - rejects are kept once each, however often they are put.
 */
import type { Topic } from '../../../contracts/events/event.ts'

/** A record to append. A null value is a tombstone. Kafka keeps headers; the journal has none of its records. */
export interface NewRecord {
  topic: Topic
  key: Uint8Array | null
  value: Uint8Array | null
  headers?: Readonly<Record<string, Uint8Array>>
  /** Every value of the headers that came more than once; `headers` has their last. */
  repeatedHeaders?: Readonly<Record<string, readonly Uint8Array[]>>
}

/** A record as the log delivers it. `appendedAt` is the log's own time, in ms since the epoch. */
export interface LogRecord extends NewRecord {
  partition: number
  offset: number
  appendedAt: number
}

/** The offset to read next in a partition. */
export interface Position {
  topic: Topic
  partition: number
  next: number
}

/** Records of any partitions, and the positions that stand after them. */
export interface Delivery {
  records: LogRecord[]
  /** One for each partition that the delivery moves on in. */
  positions: Position[]
  /** Names the assignment of partitions under which the records were fetched. */
  assignment: string
}

export interface PollBounds {
  recordsMax: number
  bytesMax: number
  /** How long to wait for the first record before an empty delivery, in ms. */
  waitMsMax: number
}

export interface PartitionLag {
  topic: Topic
  partition: number
  /** The next offset that a commit has confirmed. */
  committed: number
  /** The offset that the next appended record will get, or a bound above it. */
  end: number
}

/** A record that could not be projected, with what a person needs to find and repair it. */
export interface Reject {
  record: LogRecord
  reason: string
}

/** A reject as the log keeps it. `rejectedAt` is in ms since the epoch. */
export interface StoredReject extends Reject {
  rejectedAt: number
  /** The bytes of a value that was too large to be kept: the record's `value` is null then, and is no tombstone. */
  omittedValueBytes?: number
}

export interface EventWriter {
  /** Appends in order, all or nothing for the journal; resolves once durable. */
  append(records: readonly NewRecord[]): Promise<void>
  close(): Promise<void>
}

export interface EventReader {
  /** The next records, up to the bounds; empty after `waitMsMax`. An aborted signal ends the wait at once. */
  poll(bounds: PollBounds, signal: AbortSignal): Promise<Delivery>
  /** Makes the positions durable. Throws `SupersededAssignment` when the assignment is not the present one. */
  commit(assignment: string, positions: readonly Position[]): Promise<void>
  /** Keeps rejects, original bytes included; the same record twice is kept once. */
  reject(rejects: readonly Reject[]): Promise<void>
  /** Records that are in the log and not committed, by partition of the present assignment. */
  lag(): Promise<PartitionLag[]>
  /** Whether this reader holds partition 0 of `campaigns`: its process is the one that folds. */
  leads(): boolean
  close(): Promise<void>
}

/** The assignment changed since the records were fetched: whoever holds the partitions now repeats the work. */
export class SupersededAssignment extends Error {
  override name = 'SupersededAssignment'
}
