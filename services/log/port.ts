/**
 * The event log port: what the projector and the commands need of Kafka, and of the journal that replaces it in
 * embedded mode.
 *
 * Every implementation keeps these promises (test/integration/log/event-log.conformance.ts):
 * - records of one partition are delivered in offset order, and none is left out;
 * - only positions that `commit` was given are committed, and a commit of a superseded assignment commits nothing;
 * - a reader begins where it is told, and if the log has another record there, at the start of the partition;
 * - after `restart` it begins where it is told then, under another assignment;
 * - a record that was appended (the promise of `append` resolved) survives a crash of the process;
 * - the watermark that is remembered never goes down, whatever is committed, and whichever reader leads.
 */
import type { Topic } from '../../contracts/events/event.ts'

/** The order in which topics are read: small and urgent ones first. */
export const readingOrder = [
  'accounts',
  'api-keys',
  'notices',
  'campaigns',
  'pledges',
] as const satisfies readonly Topic[]

/** A record to append. A null value is a tombstone. Kafka keeps headers, the journal does not. */
export interface NewRecord {
  topic: Topic
  key: Uint8Array | null
  value: Uint8Array | null
  headers?: readonly Header[]
}

/** A name may be repeated. Then its last value counts, as in Kafka's own clients. */
export type Header = readonly [name: string, value: Uint8Array]

/** A record as the log delivers it. `appendedAt`: ms since the epoch, a safe integer whatever its producer wrote. */
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
  /** How many headers the record has, if all of them are left out because it cannot be read. */
  omittedHeaders?: number
}

/** The offset to read next in a partition. */
export interface Position {
  topic: Topic
  partition: number
  next: number
  /** When the last delivered record before it entered the log, Unix ms. */
  lastAt?: number
}

/** The name of a partition in maps and messages. */
export function partitionName({ topic, partition }: { topic: string; partition: number }): string {
  return `${topic}/${partition}`
}

/** Where reading begins in a partition. */
export interface Start {
  /** The offset to read next. */
  next: number
  /** When the record before it entered the log, Unix ms; 0: unknown. Another record there means another log. */
  lastAt: number
}

/** A partition, the offset of its first record, and the offset that its next record will get. */
export interface PartitionRange {
  topic: Topic
  partition: number
  low: number
  end: number
}

/** What a reader knows of its log when it is assigned partitions. */
export interface LogState {
  /** As `EventReader.log`. */
  log: string
  /** The name of the assignment. */
  assignment: string
  /** All partitions of the log, also those of other readers. */
  partitions: readonly PartitionRange[]
  remembered: RememberedWatermark
}

/** Unix ms; 0: none. */
export interface RememberedWatermark {
  /** No list has shown a higher one. */
  watermark: number
  /** Lists have shown this one. */
  shown: number
}

/** Says where readers begin. */
export interface FindStarts {
  /**
   * By `partitionName`. It is asked for one assignment after the other, before anything of it is read, and waits for its own services.
   */
  find(state: LogState): Promise<ReadonlyMap<string, Start>>
  /** The log was replaced: this partition is read from its first record. */
  beginAnew(range: PartitionRange, reason: string): void
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

/** Records that wait, in all partitions together. */
export function lagRecords(lag: readonly Pick<PartitionLag, 'committed' | 'end'>[]): number {
  // The ends are read first, so a position may be beyond its end.
  return lag.reduce((sum, { committed, end }) => sum + Math.max(0, end - committed), 0)
}

export interface EventWriter {
  /** Appends in order. The journal appends all or nothing. Resolves when the records are durable. */
  append(records: readonly NewRecord[]): Promise<void>
  close(): Promise<void>
}

export interface EventReader {
  /** Offsets count in this log: the id of the Kafka cluster and the prefix of its topics; empty for the journal. */
  readonly log: string
  /** The next records, up to the bounds; empty after `waitMsMax`. An abort of the signal ends the wait at once. */
  poll(bounds: PollBounds, signal: AbortSignal): Promise<Delivery>
  /**
   * Tells the log that everything before the positions is done, for the tools that show a lag. Throws `SupersededAssignment` if the
   * assignment is not the current one.
   */
  commit(assignment: string, positions: readonly Position[]): Promise<void>
  /** Begins again where the starts say now. What is fetched and not committed is dropped, as after a new assignment. */
  restart(): Promise<void>
  /** Records that are in the log and not committed, for each partition of the current assignment. */
  lag(): Promise<PartitionLag[]>
  /** Whether this reader holds partition 0 of `campaigns`. Its process is the one that folds. */
  leads(): boolean
  /**
   * Remembers a watermark that will be written, and one that was (`shown`), so that they outlive the tables. Resolves when both are
   * durable, with the highest watermark that was ever remembered. Throws `SupersededAssignment` if this reader does not lead.
   */
  rememberWatermark(watermark: number, shown?: number): Promise<number>
  close(): Promise<void>
}

/** The assignment changed after the records were fetched. The process that has the partitions now repeats the work. */
export class SupersededAssignment extends Error {
  override name = 'SupersededAssignment'
}

/** Another process holds the log for longer than a call waits, or its disk is full. The same call may succeed later. */
export class LogHeld extends Error {
  override name = 'LogHeld'
}

/** The event log for a rebuild: it reads the log again, beside the projectors. */
export interface History {
  /** Opens a reader that begins where the starts say. */
  open(consumer: string, starts: FindStarts): Promise<EventReader>
  /** Removes what the log keeps of a consumer. Does nothing if the consumer is not known or has a reader. */
  forget(consumer: string): Promise<void>
  /** The ends of all partitions of the log: the offset that the next record of each will get. */
  ends(): Promise<Position[]>
  /** What the projectors' readers have remembered. */
  remembered(): Promise<RememberedWatermark>
  close(): Promise<void>
}

/** The bytes of the key, the value, and all values of the headers. */
export function bytesOf({ key, value, headers = [] }: NewRecord): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0)
  for (const [, one] of headers) bytes += one.length
  return bytes
}
