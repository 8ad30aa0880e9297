/** Archived events as an event reader, so that they take the way of all events. Its places are not kept: a reader begins anew. */
import { setTimeout as delay } from 'node:timers/promises'
import type { StateEncoder } from '../../contracts/events/codec.ts'
import type { Delivery, EventReader, LogRecord, NewRecord, Position } from '../shared/event-log/port.ts'
import { type ArchiveProgress, inspectArchive, readArchive } from './archive.ts'

export interface ArchiveReader extends EventReader {
  /** What `lag` tells as committed once everything is read and written. */
  readonly end: readonly Position[]
  /** In bytes of the files. */
  progress(): { done: number; of: number }
}

// The port wants a place: all of the files are one partition.
const place = { topic: 'campaigns', partition: 0 } as const
const assignment = 'archive'

/** Throws `ArchiveError` where a file cannot be read; `poll` does where its content is wrong. */
export async function openArchiveReader(
  paths: readonly string[],
  { encode }: { encode: StateEncoder },
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
    // One more than the last: it is committed when it is known that nothing follows.
    end: [{ ...place, next: Number.MAX_SAFE_INTEGER }],
    progress: () => ({ done: progress.bytesDone, of: progress.bytesTotal }),

    async poll({ recordsMax, waitMsMax }, signal): Promise<Delivery> {
      await fill()
      // Whoever asks again and again at the end leaves the process its turns.
      if (waiting.length === 0) await delay(waitMsMax, undefined, { signal }).catch(() => undefined)
      const appendedAt = Date.now()
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

    // A wrong line or object is no reject: reading stops at it.
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
