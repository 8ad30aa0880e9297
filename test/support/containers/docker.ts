/** The docker command line. Each call has a time limit. */
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export interface RunOptions {
  stdin?: string
  /** In addition to the environment of this process. */
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

/** Runs a program to its end. Rejects if it cannot be started. The caller checks the exit code. */
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
  // A program may end before it has read its whole input. The exit code tells whether that is an error.
  child.stdin.on('error', () => undefined).end(stdin)
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  return { code, stdout, stderr }
}

/** Runs `docker` with these arguments. Throws with its output if it fails; resolves with its stdout. */
export async function docker(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run('docker', args, options)
  if (code === 0) return stdout.trim()
  const said = `${stdout}\n${stderr}`.trim().split('\n').slice(-20).join('\n')
  throw new Error(`docker ${args.join(' ')} ended with ${code}:\n${said}`)
}
