/**
 * The journal's file: opening, creating and writing it. Its tables are in records.sql and watermarks.sql.
 *
 * WAL with synchronous=FULL: a committed transaction survives a power loss, readers never wait for writers, and
 * writers wait for each other. A writer that waits yields to the event loop, because the process may be serving HTTP.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Topic } from '../../../contracts/events/event.ts'
import { retry } from '../../runtime/async/retry.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { LogHeld } from '../port.ts'

/** The offset of the first record of a topic. */
export const firstOffset = 1

/** The journal's only partition of each topic. */
export const onlyPartition = 0

/** The table that holds a topic's records. */
export const recordsTable: Readonly<Record<Topic, string>> = {
  campaigns: 'records_campaigns',
  pledges: 'records_pledges',
  'api-keys': 'records_api_keys',
  accounts: 'state_accounts',
  notices: 'state_notices',
}

const schemaVersion = 2
// "PVEJ": distinguishes a journal from any other SQLite file.
const applicationId = 0x5056454a
const pageBytes = 8192
// SQLite blocks the thread while it waits for a lock. So a reader waits only briefly, for one that opens or closes the file, and a writer
// waits on a timer.
const lockBlockMsMax = 20
const lockPauseMs = 5
const lockWaitMsMax = 15_000
const sqliteBusy = 5
const sqliteFull = 13
// There is no room for the index of the WAL: SQLite calls it an I/O error.
const sqliteIndexFull = 4874

/**
 * Opens the journal for reading and writing. If there is none, creates one that only its owner can read. Throws an
 * `Error` if the file is something else, or has another schema version.
 */
export async function openJournalFile(path: string): Promise<DatabaseSync> {
  makePrivateFile(path)
  const db = openDatabase(path)
  try {
    await withLockRetry(path, () => {
      if (readVersion(db) === 0) db.exec(`PRAGMA page_size = ${pageBytes}`)
      db.exec('PRAGMA journal_mode = WAL')
    })
    db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA journal_size_limit = 67108864')
    await inWriteTransaction(db, path, () => prepareSchema(db, path))
    return db
  } catch (cause) {
    db.close()
    if (isSqliteError(cause) && isFull(cause)) throw cannotWrite(path, cause)
    throw isSqliteError(cause) ? cannotOpen(path, cause) : cause
  }
}

// The last transaction of a connection. SQLite has no two at once on one connection.
const lastOn = new WeakMap<DatabaseSync, Promise<unknown>>()

/**
 * Runs `work` in one write transaction: all of it is durable when this resolves, or none of it is done. Waits for
 * other writers up to 15 s, then throws `LogHeld`. The transactions of a connection run in the order of the calls.
 */
export function inWriteTransaction<T>(db: DatabaseSync, path: string, work: () => T): Promise<T> {
  const done = (lastOn.get(db) ?? Promise.resolve()).then(() => transact(db, path, work))
  lastOn.set(
    db,
    done.catch(() => undefined),
  )
  return done
}

/** Closes the connection when its transactions that were called for have ended. May be called twice. */
export async function closeJournalFile(db: DatabaseSync): Promise<void> {
  await lastOn.get(db)
  if (db.isOpen) db.close()
}

async function transact<T>(db: DatabaseSync, path: string, work: () => T): Promise<T> {
  try {
    await withLockRetry(path, () => beginAtOnce(db))
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (cause) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw isSqliteError(cause) ? cannotWrite(path, cause) : cause
  }
}

/** Begins to write, or throws at once if another connection does: the wait is that of the caller, which blocks no thread. */
function beginAtOnce(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE')
  } finally {
    db.exec(`PRAGMA busy_timeout = ${lockBlockMsMax}`)
  }
}

/** A full disk passes once there is room again. */
function cannotWrite(path: string, cause: Error & { errcode: number }): Error {
  const message = `the journal ${path} cannot be written: ${cause.message}`
  if (!isFull(cause)) return new Error(message, { cause })
  return new LogHeld(`${message}. Make room on its disk`, { cause })
}

function isFull({ errcode }: { errcode: number }): boolean {
  return (errcode & 0xff) === sqliteFull || errcode === sqliteIndexFull
}

/** Whether there is a journal here that a projector has read. */
export function hasBeenRead(path: string): boolean {
  if (!existsSync(path)) return false
  const db = openDatabase(path)
  try {
    const version = readVersion(db)
    if (version === 0) return false
    // Version 1 had no watermarks.
    return db.prepare(`SELECT 1 FROM ${version === 1 ? 'positions' : 'watermarks'}`).get() !== undefined
  } catch (cause) {
    throw cannotOpen(path, cause)
  } finally {
    db.close()
  }
}

/** The offset that the next record of the topic will get. */
export function endOf(db: DatabaseSync, topic: Topic): number {
  const row = db.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').get(recordsTable[topic])
  return row === undefined ? firstOffset : Number(row.seq) + 1
}

/**
 * Creates an empty file that only its owner can read, if there is none. SQLite would let everyone read it.
 *
 * It never opens an existing file: opening and closing it would drop the locks that this process holds on it (POSIX
 * locks belong to the process, not to the descriptor).
 */
export function makePrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') return
    throw new Error(`cannot make ${path}: ${messageOf(cause)}`, { cause })
  }
  syncDirectoryOf(path)
}

/** After this a file that was made or renamed is still there after a power loss. */
export function syncDirectoryOf(path: string): void {
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
}

/** Whether SQLite failed because another connection holds a lock. */
export function isBusy(cause: unknown): boolean {
  // The low byte is the primary code. The rest says why it was busy.
  return isSqliteError(cause) && (cause.errcode & 0xff) === sqliteBusy
}

function isSqliteError(cause: unknown): cause is Error & { errcode: number } {
  return cause instanceof Error && 'errcode' in cause
}

/** Retries work that waits for a lock of another process, up to 15 s, and then throws `LogHeld`. */
export async function withLockRetry(path: string, work: () => void): Promise<void> {
  try {
    await retry(work, { isRetryable: isBusy, msMax: lockWaitMsMax, pauseMsMin: lockPauseMs })
  } catch (cause) {
    if (!isBusy(cause)) throw cause
    throw new LogHeld(
      `another process has held the journal ${path} for ${lockWaitMsMax / 1000} s: wait until a purge has rewritten it, and end an ` +
        'events append that is suspended',
      { cause },
    )
  }
}

function openDatabase(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: lockBlockMsMax })
  } catch (cause) {
    throw cannotOpen(path, cause)
  }
}

function cannotOpen(path: string, cause: unknown): Error {
  return new Error(`cannot open the journal ${path}: ${messageOf(cause)}`, { cause })
}

function prepareSchema(db: DatabaseSync, path: string): void {
  const version = readVersion(db)
  if (version === 0 && db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined) {
    for (const table of Object.values(recordsTable)) db.exec(sqlOf('records').replace('{table}', table))
    db.exec(`${sqlOf('watermarks')}; PRAGMA application_id = ${applicationId}`)
  } else if (readPragma(db, 'application_id') !== applicationId) {
    throw new Error(`${path} is not a journal`)
  } else if (version === 1) {
    db.exec(`${sqlOf('watermarks')}; ${sqlOf('from-version-1')}`)
  } else if (version !== schemaVersion) {
    const age = version > schemaVersion ? 'newer' : 'older'
    throw new Error(
      `the journal ${path} has schema version ${version}, made by ${age} software; this one reads ${schemaVersion}`,
    )
  }
  if (version !== schemaVersion) db.exec(`PRAGMA user_version = ${schemaVersion}`)
}

function sqlOf(name: string): string {
  return readFileSync(new URL(`./${name}.sql`, import.meta.url), 'utf8')
}

function readVersion(db: DatabaseSync): number {
  return readPragma(db, 'user_version')
}

function readPragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name])
}
