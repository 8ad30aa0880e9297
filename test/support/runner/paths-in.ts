/** The files and folders of a data directory that is in use. */
import { type Dirent, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Everything in a folder, at any depth. ClickHouse goes on merging, so what vanishes meanwhile is left out. */
export function pathsIn(folder: string): { path: string; isFile: boolean }[] {
  return entriesOf(folder).flatMap(entry => {
    const path = join(folder, entry.name)
    return [{ path, isFile: entry.isFile() }, ...(entry.isDirectory() ? pathsIn(path) : [])]
  })
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
