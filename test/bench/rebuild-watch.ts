/** Watches from outside what a process takes while it works: memory, and room on the disk. */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { memoryOf } from './kafka/process-usage.ts'
import { type Summary, summarize } from './samples.ts'

export interface Taken {
  /** Resident, over all looks. */
  residentBytes: Summary
  /** Of all files below the directory, with those that nobody reads any more and that are not removed yet. */
  diskBytes: Summary
}

export interface Watch {
  stop(): Taken
}

const memoryLookMs = 250
const diskLookMs = 2_000

export function watchProcess({ pid, directory }: { pid: number; directory: string }): Watch {
  const resident: number[] = []
  const disk: number[] = []
  function lookAtMemory(): void {
    try {
      resident.push(memoryOf(pid).residentBytes)
    } catch {
      // Whoever asks the process notices that it is gone, and says why.
    }
  }
  const lookAtDisk = () => disk.push(bytesBelow(directory))
  lookAtMemory()
  lookAtDisk()
  const timers = [setInterval(lookAtMemory, memoryLookMs), setInterval(lookAtDisk, diskLookMs)]
  return {
    stop() {
      for (const timer of timers) clearInterval(timer)
      lookAtMemory()
      lookAtDisk()
      return { residentBytes: summarize(resident), diskBytes: summarize(disk) }
    },
  }
}

/** What goes away while it is looked at, as ClickHouse's parts do, counts as nothing. */
export function bytesBelow(directory: string): number {
  return entriesOf(directory).reduce((bytes, entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return bytes + bytesBelow(path)
    // ClickHouse links every table's directory from a second place.
    return entry.isFile() ? bytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : bytes
  }, 0)
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
