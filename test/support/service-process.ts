/** The program as its users run it: child processes of the command line, in data directories of their own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'

const cli = new URL('../../services/cli.ts', import.meta.url).pathname

export interface ServiceProcess {
  /** `http://127.0.0.1:port/api/v1` */
  apiUrl: string
  opsUrl: string
  child: ChildProcess
  /** What it printed on stdout and stderr so far. */
  output(): string
  /** Interrupts it and resolves with its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export interface CommandResult {
  code: number | null
  stdout: string
  stderr: string
}

export function makeDataDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'pledgeview-test-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/**
 * Starts the service on free ports and resolves once it says that it serves, or, with `sign`, once it has said that.
 * Rejects where it ends before.
 */
export async function startServiceProcess(
  args: readonly string[],
  environment: Record<string, string> = {},
  sign = ' (ops: ',
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [cli, 'start', '--port', '0', '--ops-port', '0', ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const urls = new Promise<{ apiUrl: string; opsUrl: string }>((resolve, reject) => {
    const onData = (data: Buffer) => {
      output += data.toString()
      const found = /serves (\S+) \(ops: (\S+)\)/.exec(output)
      if (found?.[1] && found[2]) resolve({ apiUrl: found[1], opsUrl: found[2] })
      else if (output.includes(sign)) resolve({ apiUrl: '', opsUrl: '' })
    }
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)
    child.on('exit', code => reject(new Error(`the service ended with ${code} before it served:\n${output}`)))
    child.on('error', reject)
  })
  const { apiUrl, opsUrl } = await urls
  return {
    apiUrl,
    opsUrl,
    child,
    output: () => output,
    async stop(signal = 'SIGINT') {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
      child.kill(signal)
      await once(child, 'exit')
      return child.exitCode
    },
  }
}

/** Runs one command to its end. */
export async function runCli(args: readonly string[], stdin?: Readable | string): Promise<CommandResult> {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  // A command that stops early closes its stdin; what still comes has nowhere to go.
  child.stdin.on('error', () => {})
  if (typeof stdin === 'string' || stdin === undefined) child.stdin.end(stdin ?? '')
  else stdin.pipe(child.stdin)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: child.exitCode, stdout, stderr }
}
