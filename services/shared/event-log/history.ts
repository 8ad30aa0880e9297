/** The event log for a rebuild: it reads the log again from its own positions, beside the projectors. */
import type { EventReader, Position } from './port.ts'

export interface History {
  /** What `seek` and `open` wait for, if they take seconds; for a message after "waits for". */
  waitsFor?: string
  /**
   * Opens a reader that continues at the consumer's position: at the start of the log, or at the position that `seek`
   * set.
   */
  open(consumer: string): Promise<EventReader>
  /** Sets the positions of a consumer that has no reader. */
  seek(consumer: string, positions: readonly Position[]): Promise<void>
  /** Removes a consumer's positions. Does nothing if the consumer is not known or has a reader. */
  forget(consumer: string): Promise<void>
  /** The first records that were appended at this time (Unix ms) or later, or the ends of the partitions. */
  positionsAt(time: number): Promise<Position[]>
  /** The ends of all partitions of the log: the offset that the next record of each will get. */
  ends(): Promise<Position[]>
  close(): Promise<void>
}
