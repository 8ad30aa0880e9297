/** The event log as a rebuild needs it: to be read once more, from places of its own, beside the projectors. */
import type { EventReader, Position } from './port.ts'

export interface History {
  /**
   * Opens a reader that goes on where the consumer of this name stands: at the start of the log, or where `seek` put it.
   */
  open(consumer: string): Promise<EventReader>
  /** Puts a consumer that has no reader at these positions. */
  seek(consumer: string, positions: readonly Position[]): Promise<void>
  /** Forgets where a consumer stands. One that is not known, or has a reader, is left as it is. */
  forget(consumer: string): Promise<void>
  /** Up to where the projectors have committed: everything before that is in the tables that were live then. */
  livePositions(): Promise<Position[]>
  /** The first records that were appended at this time (Unix ms) or later, or the ends. */
  positionsAt(time: number): Promise<Position[]>
  close(): Promise<void>
}
