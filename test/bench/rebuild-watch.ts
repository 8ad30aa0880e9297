/** Watches from outside what a process takes while it works: memory, and room on the disk. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { memoryOf } from './kafka/process-usage.ts'
import { type Summary, summarize } from './samples.ts'

export interface Taken {
  /** Resident, over all looks. */
  residentBytes: Summary
  /** Of all files below the directory. */
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

/** What goes away while it is looked at counts as nothing; a file with several names counts once for each. */
export function bytesBelow(directory: string): number {
  let bytes = 0
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile())
      bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}
