/** The event log for a rebuild: it reads the log again, beside the projectors. */
import type { EventReader, FindStarts, Position } from './port.ts'

export interface History {
  /** What `open` waits for, if that takes seconds; for a message after "waits for". */
  waitsFor?: string
  /** Opens a reader that begins where the starts say. */
  open(consumer: string, starts: FindStarts): Promise<EventReader>
  /** Removes what the log keeps of a consumer. Does nothing if the consumer is not known or has a reader. */
  forget(consumer: string): Promise<void>
  /** The first records that were appended at this time (Unix ms) or later, or the ends of the partitions. */
  positionsAt(time: number): Promise<Position[]>
  /** The ends of all partitions of the log: the offset that the next record of each will get. */
  ends(): Promise<Position[]>
  close(): Promise<void>
}
