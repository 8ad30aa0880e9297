/** CPU time and memory of another process. Linux only: it reads /proc. */
import { readFileSync } from 'node:fs'

// The unit of times in /proc, which does not depend on the kernel's timer: USER_HZ.
const ticksPerSecond = 100

/** CPU time of all threads since the process started, s. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name in brackets, and may contain any characters.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [userTicks, systemTicks] = fields.slice(11, 13).map(Number)
  return ((userTicks ?? 0) + (systemTicks ?? 0)) / ticksPerSecond
}

/** The peak resident memory. */
export function peakBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
}
