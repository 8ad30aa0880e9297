import { existsSync, renameSync } from 'node:fs'

/** Moves a finished folder to its place. Another process may have put its own there, also at this moment. */
export function keepFolder(part: string, folder: string): void {
  try {
    renameSync(part, folder)
  } catch (cause) {
    if (!existsSync(folder)) throw cause
  }
}
