/**
 * One process per data directory, kept by the kernel: a lock that ends with the process, however it ends.
 *
 * Node has no file locks, but SQLite does: an open exclusive transaction on a small file of its own holds one.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy, makePrivateFile } from './file.ts'

export interface DataDirectoryLock {
  release(): void
}

/** Another process holds the data directory. */
export class DataDirectoryInUse extends Error {
  override name = 'DataDirectoryInUse'
}

/**
 * Takes the data directory for this process; makes it, for its owner alone, where there is none.
 * Throws `DataDirectoryInUse` at once where another process, or this one, holds it.
 */
export function lockDataDirectory(directory: string): DataDirectoryLock {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, 'lock.sqlite')
  makePrivateFile(path)
  const db = new DatabaseSync(path, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    db.close()
    if (!isBusy(cause)) throw new Error(`cannot lock the data directory ${directory}`, { cause })
    throw new DataDirectoryInUse(`the data directory ${directory} is in use by another process`, { cause })
  }
  return {
    release() {
      if (db.isOpen) db.close()
    },
  }
}
