import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Makes a folder of the cache, unless it is there. It is filled in another place and renamed, so that an incomplete one never counts as
 * complete. Another process may put its own there, also at that moment.
 */
export async function keepFolder(folder: string, fill: (part: string) => Promise<unknown>): Promise<void> {
  if (existsSync(folder)) return
  mkdirSync(dirname(folder), { recursive: true })
  const part = mkdtempSync(join(dirname(folder), 'part-'))
  try {
    await fill(part)
    renameSync(part, folder)
  } catch (cause) {
    if (!existsSync(folder)) throw cause
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}
