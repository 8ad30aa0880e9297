/**
 * The event log port: what the projector and the commands need of Kafka, and of the journal that replaces it in
 * embedded mode.
 *
 * Every implementation keeps these promises (test/integration/event-log/event-log.conformance.ts):
 * - records of one partition are delivered in offset order, and nothing after a committed position is lost;
 * - only positions that `commit` was given are committed, and a commit of a superseded assignment commits nothing;
 * - a record that was appended (the promise of `append` resolved) survives a crash of the process;
 * - each reject is kept once, even if it is stored several times.
 */
import type { Topic } from '../../../contracts/events/event.ts'

/** A record to append. A null value is a tombstone. Kafka keeps headers, the journal does not. */
export interface NewRecord {
  topic: Topic
  key: Uint8Array | null
  value: Uint8Array | null
  headers?: Readonly<Record<string, Uint8Array>>
  /** All values of the headers that were repeated. `headers` has their last value. */
  repeatedHeaders?: Readonly<Record<string, readonly Uint8Array[]>>
}

/** A record as the log delivers it. `appendedAt` is the log's own time, in ms since the epoch. */
export interface LogRecord extends NewRecord {
  partition: number
  offset: number
  appendedAt: number
  /** Set if it is in another partition than the one that its key belongs to. The journal has only one partition. */
  isMisplaced?: true
  /** Why the record cannot be read. It is not an event then, and `value` may be null without being a tombstone. */
  unreadable?: string
  /** The size of a value that is left out because it cannot be read. */
  omittedValueBytes?: number
}

/** The offset to read next in a partition. */
export interface Position {
  topic: Topic
  partition: number
  next: number
}

/** Records of any partitions, and the positions after them. */
export interface Delivery {
  records: LogRecord[]
  /** One for each partition in which the delivery moves forward. */
  positions: Position[]
  /** The name of the assignment under which the records were fetched. */
  assignment: string
}

export interface PollBounds {
  /** The projector sets it to one slice, or to the room that is left in its batch (projector/projector.ts). */
  recordsMax: number
  bytesMax: number
  /** How long to wait for the first record before an empty delivery is returned, ms. */
  waitMsMax: number
}

export interface PartitionLag {
  topic: Topic
  partition: number
  /** The committed offset to read next. */
  committed: number
  /** The offset that the next appended record will get, or a number above it. */
  end: number
}

/** A record that could not be projected, and the reason. */
export interface Reject {
  record: LogRecord
  reason: string
}

/** A stored reject. `rejectedAt` is in ms since the epoch. */
export interface StoredReject extends Reject {
  rejectedAt: number
  /**
   * The size of a value that was too large to be stored. Then the record's `value` is null, but it is not a
   * tombstone.
   */
  omittedValueBytes?: number
}

export interface EventWriter {
  /** Appends in order. The journal appends all or nothing. Resolves when the records are durable. */
  append(records: readonly NewRecord[]): Promise<void>
  close(): Promise<void>
}

export interface EventReader {
  /** The next records, up to the bounds; empty after `waitMsMax`. An abort of the signal ends the wait at once. */
  poll(bounds: PollBounds, signal: AbortSignal): Promise<Delivery>
  /** Makes the positions durable. Throws `SupersededAssignment` if the assignment is not the current one. */
  commit(assignment: string, positions: readonly Position[]): Promise<void>
  /** Stores rejects with their original bytes. The same record is stored once, even if it is passed twice. */
  reject(rejects: readonly Reject[]): Promise<void>
  /**
   * How many rejects are stored. A retry leaves them there. On Kafka, one that was stored twice counts twice. `undefined`: this
   * reader does not know.
   */
  rejectCount?(): Promise<number>
  /** Records that are in the log and not committed, for each partition of the current assignment. */
  lag(): Promise<PartitionLag[]>
  /** Whether this reader holds partition 0 of `campaigns`. Its process is the one that folds. */
  leads(): boolean
  close(): Promise<void>
}

/** The assignment changed after the records were fetched. The process that has the partitions now repeats the work. */
export class SupersededAssignment extends Error {
  override name = 'SupersededAssignment'
}
