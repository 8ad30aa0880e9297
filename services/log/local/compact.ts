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
import {
  endOf,
  inWriteTransaction,
  onlyPartition,
  openJournalFile,
  recordsTable,
  withLockRetry,
} from './file.ts'

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

interface Place {
  offset: number
  isTombstone: boolean
}

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
      const removed = new Set([...findSuperseded(db, topic, options), ...findUnwanted(db, topic, options)])
      records += removed.size
      if (!options.isDry) await removeRecords(db, path, topic, [...removed])
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

function openRecords(db: DatabaseSync, topic: Topic): (offset: number) => LogRecord | undefined {
  const one = db.prepare(`SELECT appended_at, key, value FROM ${recordsTable[topic]} WHERE offset = ?`)
  return offset => {
    const row = one.get(offset)
    if (!row) return undefined
    const key = row.key instanceof Uint8Array ? row.key : null
    const value = row.value instanceof Uint8Array ? row.value : null
    return { topic, partition: onlyPartition, offset, appendedAt: Number(row.appended_at), key, value }
  }
}

/** A journal that was put back from a copy has other records at the same offsets. */
function findUnwanted(db: DatabaseSync, topic: Topic, { unwanted = [], versionOf }: CompactionOptions) {
  const recordAt = openRecords(db, topic)
  return unwanted
    .filter(({ topic: of, offset, appendedAt }) => {
      const record = of === topic ? recordAt(offset) : undefined
      return record?.appendedAt === appendedAt && versionOf(record) === undefined
    })
    .map(({ offset }) => offset)
}

function findSuperseded(db: DatabaseSync, topic: Topic, { versionOf }: CompactionOptions): number[] {
  const end = endOf(db, topic)
  const recordAt = openRecords(db, topic)
  const superseded: number[] = []

  function versionAt({ offset }: Place): bigint | undefined {
    const record = recordAt(offset)
    return record && versionOf(record)
  }

  function take(ofKey: readonly Place[]): void {
    for (const offset of supersededOf(topic, ofKey, versionAt)) superseded.push(offset)
  }

  let key: Buffer | undefined
  let ofKey: Place[] = []
  const sorted = db
    .prepare(
      `SELECT offset, key, value IS NULL AS is_tombstone FROM ${recordsTable[topic]}
       WHERE key IS NOT NULL AND offset < ? ORDER BY key, offset`,
    )
    .iterate(end)
  for (const row of sorted) {
    const next = Buffer.from(row.key as Uint8Array)
    if (!key?.equals(next)) {
      take(ofKey)
      ofKey = []
      key = next
    }
    ofKey.push({ offset: Number(row.offset), isTombstone: row.is_tombstone === 1 })
  }
  take(ofKey)
  return superseded
}

/** The offsets of one key's records that a record which stays supersedes. `ofKey`: by offset. */
function supersededOf(
  topic: Topic,
  ofKey: readonly Place[],
  versionAt: (place: Place) => bigint | undefined,
): number[] {
  if (ofKey.length < 2) return []
  const tombstone = ofKey.findLast(place => place.isTombstone && versionAt(place) !== undefined)
  // Nothing outranks the tombstone of a change event, so the states need not be decoded.
  if (tombstone && isChangeTopic(topic))
    return ofKey.filter(place => place !== tombstone).map(({ offset }) => offset)
  const versions = ofKey.map(place => ({ ...place, version: versionAt(place) }))
  const kept = versions.reduce<(typeof versions)[number] | undefined>((best, place) => {
    if (place.version === undefined) return best
    return best?.version === undefined || place.version >= best.version ? place : best
  }, undefined)
  if (!kept) return []
  // A record that is no event stays if it is the newer one: a corrected program may be able to read it.
  return versions
    .filter(place => place !== kept && (place.version !== undefined || place.offset < kept.offset))
    .map(({ offset }) => offset)
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
