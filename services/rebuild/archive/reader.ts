/** Archived events as an event reader, so that they go through the same loop as all events. A new reader begins at the start. */
import { setTimeout as delay } from 'node:timers/promises'
import type { StateEncoder } from '../../../contracts/events/codec.ts'
import type { Delivery, EventReader, LogRecord, NewRecord, Position } from '../../shared/event-log/port.ts'
import { type ArchiveProgress, inspectArchive, readArchive } from './archive.ts'

export interface ArchiveReader extends EventReader {
  /** The committed position that `lag` reports once everything is read and written. */
  readonly end: readonly Position[]
  /** In bytes of the files. */
  progress(): { done: number; of: number }
}

// An event reader needs a partition. All files are one partition.
const place = { topic: 'campaigns', partition: 0 } as const
const assignment = 'archive'

/**
 * Throws `ArchiveError` if a file cannot be read. `poll` throws it if the content of a file is wrong.
 * `now`: Unix ms. It becomes the time at which the records entered the log.
 */
export async function openArchiveReader(
  paths: readonly string[],
  { encode, now }: { encode: StateEncoder; now: () => number },
): Promise<ArchiveReader> {
  const { bytesTotal } = await inspectArchive(paths)
  let progress: ArchiveProgress = { bytesDone: 0, bytesTotal, records: 0 }
  const source = readArchive(paths, {
    encode,
    onProgress(now) {
      progress = now
    },
  })
  let waiting: NewRecord[] = []
  let handedOut = 0
  let committed = 0
  let isRead = false

  async function fill(): Promise<void> {
    while (waiting.length === 0 && !isRead) {
      const next = await source.next()
      if (next.done) isRead = true
      else waiting = next.value
    }
  }

  return {
    // Higher than any offset: it is committed once it is known that no record follows.
    end: [{ ...place, next: Number.MAX_SAFE_INTEGER }],
    progress: () => ({ done: progress.bytesDone, of: progress.bytesTotal }),

    async poll({ recordsMax, waitMsMax }, signal): Promise<Delivery> {
      await fill()
      // Waits, so that a caller that polls again and again at the end does not block the event loop.
      if (waiting.length === 0) await delay(waitMsMax, undefined, { signal }).catch(() => undefined)
      const appendedAt = now()
      const records = waiting.slice(0, recordsMax).map((record, index): LogRecord => {
        return { ...record, partition: 0, offset: handedOut + index, appendedAt }
      })
      waiting = waiting.slice(recordsMax)
      handedOut += records.length
      const positions = records.length > 0 ? [{ ...place, next: handedOut }] : []
      return { records, positions, assignment }
    },

    async commit(_assignment, positions) {
      for (const { next } of positions) committed = Math.max(committed, next)
    },

    // A wrong line or object is not a reject: reading stops at it.
    reject: async () => {},

    async lag() {
      const isDone = isRead && waiting.length === 0 && committed === handedOut
      const end = Number.MAX_SAFE_INTEGER
      return [{ ...place, committed: isDone ? end : committed, end }]
    },

    leads: () => false,
    close: async () => void (await source.return(undefined)),
  }
}
