/**
 * One process per data directory. The lock is the kernel's, so it ends with the process, for any reason.
 *
 * Node has no file locks, but SQLite has: an open exclusive transaction on a small file holds one.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '../../runtime/message-of.ts'
import { isBusy, makePrivateFile } from './file.ts'

/** Another process holds the data directory. */
export class DataDirectoryInUse extends Error {
  override name = 'DataDirectoryInUse'
}

/** The file of the lock. It stays when the process has ended. */
export function lockFileOf(directory: string): string {
  return join(directory, 'lock.sqlite')
}

/**
 * Locks the data directory for this process. If there is none, creates one that only its owner can read. Throws
 * `DataDirectoryInUse` at once if another process, or this one, holds the lock.
 */
export function lockDataDirectory(directory: string): { close(): void } {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = lockFileOf(directory)
  makePrivateFile(path)
  const db = new DatabaseSync(path, { timeout: 0, open: false })
  try {
    db.open()
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    close()
    if (!isBusy(cause))
      throw new Error(`cannot lock the data directory ${directory}: ${messageOf(cause)}`, { cause })
    const wayOn = 'run this again when that has ended, or interrupt it'
    throw new DataDirectoryInUse(`the data directory ${directory} is in use by another process: ${wayOn}`, {
      cause,
    })
  }
  return { close }

  function close(): void {
    if (db.isOpen) db.close()
  }
}
