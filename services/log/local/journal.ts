/**
 * The embedded event log: the port over one SQLite file, the journal.
 *
 * Any number of processes append and read at once. The positions of readers stand with the tables that they fill
 * (projector/positions): the file remembers only watermarks. One process holds a data directory (lock.ts), so a reader is superseded only by
 * its own restart. Each topic has one partition, 0, and its own position, so a backlog of pledges does not hold up a key.
 */
import type { DatabaseSync } from 'node:sqlite'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import {
  type EventReader,
  type EventWriter,
  type FindStarts,
  type History,
  type PartitionRange,
  partitionName,
  type RememberedWatermark,
  SupersededAssignment,
} from '../port.ts'
import { openCursor } from './cursor.ts'
import {
  closeJournalFile,
  endOf,
  firstOffset,
  inWriteTransaction,
  onlyPartition,
  openJournalFile,
  recordsTable,
} from './file.ts'
import { pollCursors } from './poll.ts'

export interface JournalReaderOptions {
  /** Under which name watermarks are remembered. */
  consumer: string
  /** Where reading begins. */
  starts: FindStarts
}

/**
 * Opens the journal for appending, and creates it if needed.
 *
 * One `append` is one transaction, written at once: append a few thousand records at a time to keep the event loop
 * free. Calls that are not awaited are still carried out in order. `now`: the log's clock, in ms since the epoch.
 */
export async function openJournalWriter(path: string, { now = Date.now } = {}): Promise<EventWriter> {
  const db = await openJournalFile(path)
  const insertOf = (topic: Topic) =>
    db.prepare(`INSERT INTO ${recordsTable[topic]} (appended_at, key, value) VALUES (?, ?, ?)`)
  const inserts = new Map(topics.map(topic => [topic, insertOf(topic)]))

  return {
    append: records =>
      inWriteTransaction(db, path, () => {
        const appendedAt = now()
        for (const { topic, key, value } of records) inserts.get(topic)?.run(appendedAt, key, value)
      }),
    close: () => closeJournalFile(db),
  }
}

/** The tables keep its positions under this name. */
export const journalName = ''

/** Opens the journal for reading, and creates it if needed. */
export async function openJournalReader(
  path: string,
  { consumer, starts }: JournalReaderOptions,
): Promise<EventReader> {
  const db = await openJournalFile(path)
  let begins = 0

  async function begin() {
    const assignment = `${consumer}/${++begins}`
    const remembered = await rememberWatermark(db, path, consumer, nothing)
    const committed = await findStarts(db, starts, assignment, remembered)
    return { assignment, committed, cursors: topics.map(topic => openCursor(db, topic, committed[topic])) }
  }

  let present = await begin().catch(cause => {
    db.close()
    throw cause
  })

  return {
    log: journalName,

    async poll(bounds, signal) {
      const { cursors, assignment } = present
      return { ...(await pollCursors(cursors, bounds, signal)), assignment }
    },

    async restart() {
      present = await begin()
    },

    async commit(fetchedUnder, positions) {
      const { assignment, committed } = present
      if (fetchedUnder !== assignment) {
        throw new SupersededAssignment(`the assignment ${fetchedUnder} is superseded by ${assignment}`)
      }
      for (const { topic, next } of positions) committed[topic] = Math.max(committed[topic], next)
    },

    async rememberWatermark(watermark, shown = 0) {
      return (await rememberWatermark(db, path, consumer, { watermark, shown })).watermark
    },

    async lag() {
      return topics.map(topic => ({
        topic,
        partition: onlyPartition,
        committed: present.committed[topic],
        end: endOf(db, topic),
      }))
    },

    leads: () => true,
    close: () => closeJournalFile(db),
  }
}

/** Where reading begins in each topic. A topic that has another record than the one that was read last is read from its start. */
async function findStarts(
  db: DatabaseSync,
  starts: FindStarts,
  assignment: string,
  remembered: RememberedWatermark,
): Promise<Record<Topic, number>> {
  const partitions = topics.map(topic => rangeOf(db, topic))
  const found = await starts.find({ log: journalName, assignment, partitions, remembered })
  const begins = partitions.map(range => {
    const { topic, low, end } = range
    const { next, lastAt } = found.get(partitionName(range)) ?? { next: low, lastAt: 0 }
    const at = appendedAt(db, topic, next - 1)
    const isOther = lastAt > 0 && at !== undefined && at !== lastAt
    if (next <= end && !isOther) return [topic, next]
    const reason = isOther
      ? `the record at ${next - 1} is not the one that was read`
      : `it ends at ${end}, before ${next}`
    starts.beginAnew(range, reason)
    return [topic, low]
  })
  return Object.fromEntries(begins) as Record<Topic, number>
}

/** The journal keeps the last record of each key, so what is removed at its start is not missing. */
export function rangeOf(db: DatabaseSync, topic: Topic): PartitionRange {
  return { topic, partition: onlyPartition, low: firstOffset, end: endOf(db, topic) }
}

function appendedAt(db: DatabaseSync, topic: Topic, offset: number): number | undefined {
  const row = db.prepare(`SELECT appended_at FROM ${recordsTable[topic]} WHERE offset = ?`).get(offset)
  return row && Number(row.appended_at)
}

const nothing: RememberedWatermark = { watermark: 0, shown: 0 }

/** Stores each of the two if it is higher than the stored one. Resolves with the stored ones. */
function rememberWatermark(
  db: DatabaseSync,
  path: string,
  consumer: string,
  { watermark, shown }: RememberedWatermark,
): Promise<RememberedWatermark> {
  return inWriteTransaction(db, path, () => {
    const row = db
      .prepare(
        `INSERT INTO watermarks VALUES (?, ?, ?) ON CONFLICT (consumer)
         DO UPDATE SET watermark = max(watermark, excluded.watermark), shown = max(shown, excluded.shown)
         RETURNING watermark, shown`,
      )
      .get(consumer, watermark, shown)
    return { watermark: Number(row?.watermark), shown: Number(row?.shown) }
  })
}

/* The journal's history, for a rebuild. */

/** `live`: the consumer that is the projectors'. */
export async function openJournalHistory(path: string, live: string): Promise<History> {
  const db = await openJournalFile(path)

  return {
    open: (consumer, starts) => openJournalReader(path, { consumer, starts }),

    async forget(consumer) {
      await inWriteTransaction(db, path, () =>
        db.prepare('DELETE FROM watermarks WHERE consumer = ?').run(consumer),
      )
    },

    async ends() {
      return topics.map(topic => ({ topic, partition: onlyPartition, next: endOf(db, topic) }))
    },

    remembered: () => rememberWatermark(db, path, live, nothing),
    close: () => closeJournalFile(db),
  }
}
