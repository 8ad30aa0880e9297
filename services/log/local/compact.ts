/**
 * Compacts the journal by key, as Kafka compacts a topic, so that what was deleted or replaced is really gone: of each
 * key, only the record with the highest version stays. A tombstone outranks every version, and stays.
 *
 * Promises:
 * - The outcome of a replay is the same as before.
 * - Positions of readers stay valid: offsets do not change.
 * - Removed bytes are gone from the files of the journal when this resolves. The blocks that the file system has freed
 *   are not overwritten.
 * - It can be repeated after a kill at any point.
 *
 * It reads with SQLite's own sorting and blocks its thread meanwhile, so it runs in the process of a command. Other
 * processes may append and read. They wait for its short write transactions only, and while the file is rewritten.
 */
import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isChangeTopic, type Topic, topics } from '../../../contracts/events/event.ts'
import { retry } from '../../runtime/async/retry.ts'
import type { LogRecord } from '../port.ts'
import { inWriteTransaction, onlyPartition, openJournalFile, recordsTable, withLockRetry } from './file.ts'

export interface CompactionOptions {
  /** The version of the event that a record holds; `undefined` if it is no valid event. */
  versionOf: (record: LogRecord) => bigint | undefined
  /** Records that are removed too, whatever supersedes them, if they hold no event by the rules of this version either. */
  unwanted?: readonly Pick<LogRecord, 'topic' | 'offset' | 'appendedAt'>[]
  /** Only counts. */
  isDry: boolean
  /** A larger file is not rewritten, because other writers would wait too long. */
  rewriteBytesMax: number
}

export interface CompactionReport {
  /** Those that were removed, or in a dry run found. */
  records: number
  bytesBefore: number
  bytesAfter: number
  /** Whether the file was rewritten: only then no remains of removed records are in its free pages. */
  isRewritten: boolean
}

// The least integer of SQLite.
const leastInteger = -(2n ** 63n)
const removedPerTransaction = 2_000
const checkpointMsMax = 15_000

/** Throws an `Error` if other processes hold the journal for too long. Then a part of the work may be done. */
export async function compactJournal(path: string, options: CompactionOptions): Promise<CompactionReport> {
  const db = await openJournalFile(path)
  try {
    // Without this, SQLite only forgets where removed records are.
    db.exec('PRAGMA secure_delete = ON')
    const bytesBefore = bytesOf(path)
    let records = 0
    for (const topic of topics) {
      const removed = findRemoved(db, topic, options)
      records += removed.length
      if (!options.isDry) await removeRecords(db, path, topic, removed)
    }
    if (options.isDry) return { records, bytesBefore, bytesAfter: bytesBefore, isRewritten: false }
    const isRewritten = bytesBefore <= options.rewriteBytesMax
    if (isRewritten) await withLockRetry(path, () => db.exec('VACUUM'))
    await emptyWal(db, path)
    return { records, bytesBefore, bytesAfter: bytesOf(path), isRewritten }
  } finally {
    db.close()
  }
}

/** The bytes of the file and of its write-ahead log. */
function bytesOf(path: string): number {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return statSync(path).size + (wal?.size ?? 0)
}

/**
 * The offsets of a topic's records that are removed. The newest event of a key is the one with the highest version, and of these the last
 * one. A record that is no event stays if it came later: a corrected program may be able to read it. Unless the key is deleted: nothing
 * outranks the tombstone of a change event.
 */
function findRemoved(
  db: DatabaseSync,
  topic: Topic,
  { versionOf, unwanted = [] }: CompactionOptions,
): number[] {
  const table = recordsTable[topic]
  const one = db.prepare(`SELECT appended_at, key, value FROM ${table} WHERE offset = ?`)
  // It reads the record itself: what a statement hands to a function stays in memory until the statement has ended.
  db.function('version_of', offset => {
    const { appended_at: appendedAt, key, value } = one.get(offset) ?? {}
    const record = { topic, partition: onlyPartition, offset, appendedAt, key, value } as LogRecord
    const version = versionOf(record)
    // SQLite has no unsigned numbers, so versions begin at its least one.
    return version === undefined ? null : version + leastInteger
  })
  // Of a key with one state, and of the states of a deleted key, nothing is decoded, unless it is unwanted. MATERIALIZED: once for each record.
  const rows = db.prepare(
    `WITH
       deleted AS MATERIALIZED (
         SELECT key, max(offset) AS kept FROM ${table}
         WHERE :is_change AND value IS NULL AND key IS NOT NULL AND version_of(offset) IS NOT NULL GROUP BY key
       ),
       events AS MATERIALIZED (
         SELECT offset, key, version_of(offset) AS version FROM ${table}
         WHERE key IN (SELECT key FROM ${table} GROUP BY key HAVING count(*) > 1) AND key NOT IN (SELECT key FROM deleted)
       ),
       ranked AS (
         SELECT offset, version, first_value(offset) OVER newest AS kept, first_value(version) OVER newest AS kept_version
         FROM events WINDOW newest AS (PARTITION BY key ORDER BY version DESC NULLS LAST, offset DESC)
       )
     SELECT offset FROM ${table} JOIN deleted USING (key) WHERE offset <> kept
     UNION
     SELECT offset FROM ranked
     WHERE offset <> kept AND kept_version IS NOT NULL AND (version IS NOT NULL OR offset < kept)
     UNION
     -- A journal that was put back from a copy has other records at the same offsets.
     SELECT offset FROM json_each(:unwanted) AS one CROSS JOIN ${table}
     WHERE offset = one.value ->> 0 AND appended_at = one.value ->> 1 AND version_of(offset) IS NULL`,
  )
  const places = unwanted.flatMap(of => (of.topic === topic ? [[of.offset, of.appendedAt]] : []))
  const found = rows.iterate({ is_change: Number(isChangeTopic(topic)), unwanted: JSON.stringify(places) })
  return Array.from(found, ({ offset }) => Number(offset))
}

async function removeRecords(
  db: DatabaseSync,
  path: string,
  topic: Topic,
  offsets: readonly number[],
): Promise<void> {
  const record = db.prepare(`DELETE FROM ${recordsTable[topic]} WHERE offset = ?`)
  for (let from = 0; from < offsets.length; from += removedPerTransaction) {
    await inWriteTransaction(db, path, () => {
      for (const offset of offsets.slice(from, from + removedPerTransaction)) record.run(offset)
    })
    await yieldToEventLoop()
  }
}

/** Moves everything from the write-ahead log into the file, and empties the log. Waits for readers. */
async function emptyWal(db: DatabaseSync, path: string): Promise<void> {
  await retry(
    () => {
      const row = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
      if (row?.busy !== 0) throw new Error(`other processes have read the journal ${path} for too long`)
    },
    { isRetryable: () => true, msMax: checkpointMsMax, pauseMsMin: 5 },
  )
}
