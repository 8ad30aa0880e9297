/** Starts event-log-child.ts, and follows what it prints. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('event-log-child.ts', import.meta.url))

export interface Child {
  /** The lines that it has printed so far. */
  readonly lines: readonly string[]
  /** Waits until it has printed that many lines. Throws if it ended before. */
  printed(lines: number): Promise<void>
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>
  /** Waits until it has ended by itself. Throws if it failed. */
  ended(): Promise<void>
}

export function startChild(...args: string[]): Child {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', line => lines.push(line))
  let isOver = false
  const over = Promise.all([exit, once(reader, 'close')]).then(([[code]]) => {
    isOver = true
    return code as number | null
  })
  return {
    lines,
    async printed(count) {
      while (lines.length < count) {
        await Promise.race([once(reader, 'line'), over])
        if (lines.length < count && isOver) throw new Error(`the child ended after ${lines.length} lines`)
      }
    },
    async kill() {
      child.kill('SIGKILL')
      await over
    },
    async ended() {
      const code = await over
      if (code !== 0) throw new Error(`the child failed with ${code}`)
    },
  }
}
