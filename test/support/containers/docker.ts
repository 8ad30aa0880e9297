/** The docker command line, each call bounded in time. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import type { Requirement } from '../requirements.ts'

export interface RunOptions {
  stdin?: string
  /** Beside the environment of this process. */
  environment?: Readonly<Record<string, string>>
  cwd?: string
  msMax?: number
}

export interface RunResult {
  code: number | null
  stdout: string
  stderr: string
}

const quickMsMax = 60_000
const probeMsMax = 5_000

/** Runs a program to its end. Rejects where it cannot be started; an exit code is for the caller. */
export async function run(
  program: string,
  args: readonly string[],
  { stdin = '', environment = {}, cwd, msMax = quickMsMax }: RunOptions = {},
): Promise<RunResult> {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...environment },
    stdio: 'pipe',
    timeout: msMax,
    killSignal: 'SIGKILL',
  })
  const { promise: exit, resolve, reject } = Promise.withResolvers<number | null>()
  child.once('error', reject).once('exit', resolve)
  // A program that ends before it has read everything is no news; its exit code is.
  child.stdin.on('error', () => undefined).end(stdin)
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  return { code, stdout, stderr }
}

/** `docker` with these arguments. Throws with what it said where it fails; resolves with its stdout. */
export async function docker(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run('docker', args, options)
  if (code === 0) return stdout.trim()
  const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-20).join('\n')
  throw new Error(`docker ${args.join(' ')} ended with ${code}:\n${said}`)
}

/** Whether a Docker engine answers. */
export async function dockerEngine(): Promise<Requirement> {
  try {
    await docker(['version', '--format', '{{.Server.Version}}'], { msMax: probeMsMax })
    return { isMet: true, reason: '' }
  } catch {
    return { isMet: false, reason: 'no Docker engine answers' }
  }
}
