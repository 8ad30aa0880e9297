/**
 * The embedded event log: the port over one SQLite file, the journal.
 *
 * Any number of processes append and read at once. A consumer has one reader: opening it again supersedes the
 * previous one. Each topic has one partition, 0, and its own position, so a backlog of pledges does not hold up a
 * key.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Topic, topics } from '../../../../contracts/events/event.ts'
import { type EventReader, type EventWriter, type NewRecord, SupersededAssignment } from '../port.ts'
import { openCursor } from './cursor.ts'
import { endOf, inWriteTransaction, onlyPartition, openJournalFile, recordsTable } from './file.ts'
import { pollCursors } from './poll.ts'
import { readPositions, storePositions } from './positions.ts'
import { storeRejects } from './rejects.ts'

export interface JournalWriterOptions {
  /** The log's clock, in ms since the epoch. */
  now?: () => number
}

export interface JournalReaderOptions {
  /** The owner of the positions. A new name reads from the start. */
  consumer: string
  /** The clock of rejects, in ms since the epoch. */
  now?: () => number
  /** How often an empty log is polled, in ms. */
  lookMs?: number
  /** How many rows are read before the reader yields to the event loop. */
  sliceRowsMax?: number
}

/**
 * Opens the journal for appending, and creates it if needed.
 *
 * One `append` is one transaction, written at once: append a few thousand records at a time to keep the event loop
 * free. Calls that are not awaited are still carried out in order.
 */
export async function openJournalWriter(
  path: string,
  { now = Date.now }: JournalWriterOptions = {},
): Promise<EventWriter> {
  const db = await openJournalFile(path)
  const inserts = {
    campaigns: prepareInsert(db, 'campaigns'),
    pledges: prepareInsert(db, 'pledges'),
    'api-keys': prepareInsert(db, 'api-keys'),
  }
  let last: Promise<unknown> = Promise.resolve()

  function inOrder(work: () => Promise<void>): Promise<void> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  return {
    append: records =>
      inOrder(() => inWriteTransaction(db, path, () => insertRecords(inserts, records, now()))),
    async close() {
      await last
      if (db.isOpen) db.close()
    },
  }
}

function prepareInsert(db: DatabaseSync, topic: Topic): StatementSync {
  return db.prepare(`INSERT INTO ${recordsTable[topic]} (appended_at, key, value) VALUES (?, ?, ?)`)
}

function insertRecords(
  inserts: Readonly<Record<Topic, StatementSync>>,
  records: readonly NewRecord[],
  appendedAt: number,
): void {
  for (const { topic, key, value } of records) inserts[topic].run(appendedAt, key, value)
}

/** Opens the journal for the consumer, creates it if needed, and supersedes the consumer's previous reader. */
export async function openJournalReader(
  path: string,
  { consumer, now = Date.now, lookMs = 25, sliceRowsMax = 2_000 }: JournalReaderOptions,
): Promise<EventReader> {
  const db = await openJournalFile(path)
  const generation = await inWriteTransaction(db, path, () => raiseGeneration(db, consumer)).catch(cause => {
    db.close()
    throw cause
  })
  const assignment = assignmentOf(consumer, generation)
  const committed = readPositions(db, consumer)
  const cursors = topics.map(topic => openCursor(db, topic, committed[topic]))

  return {
    poll: async (bounds, signal) => ({
      ...(await pollCursors(cursors, bounds, { lookMs, sliceRowsMax, signal })),
      assignment,
    }),

    async commit(fetchedUnder, positions) {
      await inWriteTransaction(db, path, () => {
        const present = assignmentOf(consumer, readGeneration(db, consumer))
        if (fetchedUnder !== assignment || present !== assignment) {
          throw new SupersededAssignment(`the assignment ${fetchedUnder} is superseded by ${present}`)
        }
        storePositions(db, consumer, positions)
      })
    },

    async reject(rejects) {
      if (rejects.length === 0) return
      await inWriteTransaction(db, path, () => storeRejects(db, rejects, now()))
    },

    async rejectCount() {
      return Number(db.prepare('SELECT count(*) AS rejects FROM rejects').get()?.rejects)
    },

    async lag() {
      const present = readPositions(db, consumer)
      return topics.map(topic => ({
        topic,
        partition: onlyPartition,
        committed: present[topic],
        end: endOf(db, topic),
      }))
    },

    leads: () => true,

    async close() {
      if (db.isOpen) db.close()
    },
  }
}

function assignmentOf(consumer: string, generation: number): string {
  return `${consumer}/${generation}`
}

function raiseGeneration(db: DatabaseSync, consumer: string): number {
  db.prepare(
    'INSERT INTO consumers VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET generation = generation + 1',
  ).run(consumer)
  return readGeneration(db, consumer)
}

function readGeneration(db: DatabaseSync, consumer: string): number {
  return Number(db.prepare('SELECT generation FROM consumers WHERE name = ?').get(consumer)?.generation)
}
