/** The benches' temporary directory. It is always removed as a whole, even after an error. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Workspace {
  /** Creates a separate directory that only its owner can read. */
  directory(name: string): string
  /** Removes one directory early, to free its disk space for the next run. */
  discard(directory: string): void
  /** Removes everything. */
  remove(): void
}

export function createWorkspace(): Workspace {
  const root = mkdtempSync(join(tmpdir(), 'pledgeview-bench-'))
  let made = 0
  return {
    directory(name) {
      made++
      const path = join(root, `${name}-${made}`)
      mkdirSync(path, { mode: 0o700 })
      return path
    },
    discard: removeTree,
    remove: () => removeTree(root),
  }
}

function removeTree(path: string): void {
  // A process that was just killed may still be writing its last file there.
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
}
