/** Measures from outside the memory and disk space that processes use while they work. */
import { type Dirent, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { memoryOf } from './process-usage.ts'
import { type Summary, summarize } from './samples.ts'

export interface Taken {
  /** Resident memory of all processes together, over all samples. */
  residentBytes: Summary
  /** The size of all files below the directory, including files that are unused but not removed yet. */
  diskBytes: Summary
}

export interface Watch {
  stop(): Taken
}

const memoryLookMs = 250
const diskLookMs = 2_000

export function watchProcesses({ pids, directory }: { pids: readonly number[]; directory: string }): Watch {
  const resident: number[] = []
  const disk: number[] = []
  function lookAtMemory(): void {
    try {
      resident.push(pids.reduce((sum, pid) => sum + memoryOf(pid).residentBytes, 0))
    } catch {
      // The bench itself notices when a process has ended.
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

/** A file that disappears during the scan, as ClickHouse's parts do, counts as zero. */
export function bytesBelow(directory: string): number {
  return entriesOf(directory).reduce((bytes, entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return bytes + bytesBelow(path)
    // ClickHouse has a second link to every table's directory.
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
