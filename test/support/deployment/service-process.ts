/** The program as its users run it: child processes of the command line, in separate data directories. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { killAtExit, type RunResult, run } from '../runner/programs.ts'

const cli = fileURLToPath(new URL('../../../services/cli.ts', import.meta.url))
// A long-running process prints much; tests only need the end.
const outputLengthMax = 1_000_000

export type ServiceProcess = Awaited<LaunchedProcess['started']>
export type CommandResult = RunResult

export function makeDataDirectory(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'pledgeview-test-'))
  // The ClickHouse of a service that was killed ends a moment after it, and may write until then.
  return {
    path,
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  }
}

/** A command of the program that has been started and may not run yet. */
export type LaunchedProcess = ReturnType<typeof launchProcess>

/** Starts a command of the program that runs until it is interrupted; see `startProcess`. `program`: that of another checkout. */
export function launchProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  sign = ' (ops: ',
  program = cli,
) {
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  killAtExit(child)
  let output = ''
  const saidSign = new Promise<void>((resolve, reject) => {
    const onData = (data: Buffer) => {
      output = (output + data.toString()).slice(-outputLengthMax)
      if (output.includes(sign)) resolve()
    }
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)
    // Not at `exit`: what it said last, for example why it ended, may still be in the pipe.
    child.on('close', code => reject(new Error(`${args[0]} ended with ${code} before it ran:\n${output}`)))
    child.on('error', reject)
  })
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const closed = new Promise<void>(resolve => void child.once('close', () => resolve()))
  const launched = {
    child,
    /** The end of what it has printed on stdout and stderr. */
    output: () => output,
    hasEnded,
    /** Interrupts it. Resolves with its exit code when all of its output has been read. */
    async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
      if (!hasEnded()) child.kill(signal)
      await closed
      return child.exitCode
    },
  }
  /** Resolves when it has printed its sign. Rejects with its output if it ends before. */
  const started = saidSign.then(() => ({
    /** `http://127.0.0.1:port/api/v1`; empty if it serves no API. */
    apiUrl: /serves (\S+)/.exec(output)?.[1] ?? '',
    opsUrl: / \(ops: (\S+)\)/.exec(output)?.[1] ?? '',
    ...launched,
  }))
  return { ...launched, started }
}

/**
 * Starts a command of the program that runs until it is interrupted. Resolves when it has printed that it is ready
 * or, with `sign`, when it has printed that. Rejects with its output if it ends before.
 */
export function startProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  sign?: string,
): Promise<ServiceProcess> {
  return launchProcess(args, environment, sign).started
}

/** Free ports, all of them. */
export const freePorts = ['port', 'portal-port', 'ops-port', 'sql-port', 'sql-native-port'].flatMap(name => [
  `--${name}`,
  '0',
])

/** Starts the embedded service on free ports; see `startProcess`. */
export function startServiceProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  sign?: string,
): Promise<ServiceProcess> {
  return startProcess(['start', ...freePorts, ...args], environment, sign)
}

/** Runs one command to its end. */
export function runCli(
  args: readonly string[],
  stdin: Readable | string = '',
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return run(process.execPath, [cli, ...args], { stdin, environment, msMax: Infinity })
}
