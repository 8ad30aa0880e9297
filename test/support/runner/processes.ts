/** Processes of this machine, according to Linux. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { expect, vi } from 'vitest'
import type { Requirement } from './requirements.ts'

export const procFileSystem: Requirement = {
  isMet: existsSync('/proc/self/stat'),
  reason: 'there is no /proc, which describes processes',
}

const goneMsMax = 30_000

/** Whether the process exists and has not ended. A zombie, which its parent has not reaped yet, has ended. */
export function isRunning(pid: number): boolean {
  const stat = contentOf(`/proc/${pid}/stat`)
  return stat !== '' && !/^\) Z/.test(stat.slice(stat.lastIndexOf(')')))
}

/** Resolves when the process has ended. */
export async function whenGone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(isRunning(pid), `process ${pid} still runs`).toBe(false), {
    timeout: goneMsMax,
    interval: 20,
  })
}

/** The running processes whose command line holds the text. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => isRunning(pid) && contentOf(`/proc/${pid}/cmdline`).includes(text))
}

/** The process's command line and environment, as other users may see them. */
export function startOf(pid: number): { commandLine: string; environment: string } {
  return { commandLine: contentOf(`/proc/${pid}/cmdline`), environment: contentOf(`/proc/${pid}/environ`) }
}

/** The addresses at which the process listens, as `address:port` in the kernel's hexadecimal digits, sorted. */
export function listeningOf(pid: number): string[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap(
      fd => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    ),
  )
  return ['tcp', 'tcp6']
    .flatMap(table => contentOf(`/proc/${pid}/net/${table}`).split('\n').slice(1))
    .map(line => line.trim().split(/\s+/))
    .flatMap(([, local = '', , state, , , , , , inode = '']) =>
      state === listening && sockets.has(inode) ? [local] : [],
    )
    .toSorted()
}

/** An address of the loopback in the same digits. */
export function loopbackDigits(port: number): string {
  return `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
}

const listening = '0A'

const contentOf = (path: string) => orNothing(() => readFileSync(path, 'utf8'))
const linkOf = (path: string) => orNothing(() => readlinkSync(path))

/** A process may end during the scan. */
function orNothing(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
