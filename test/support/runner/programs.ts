/** Runs programs of this machine to their end, and keeps what they download in node_modules/.cache. Each call has a time limit. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Requirement } from './requirements.ts'

export const cacheFolder = fileURLToPath(new URL('../../../node_modules/.cache/pledgeview/', import.meta.url))

export interface RunOptions extends Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> {
  stdin?: string | Readable
  /** In addition to the environment of this process. */
  environment?: Readonly<Record<string, string>>
  msMax?: number
}

export interface RunResult {
  code: number | null
  stdout: string
  stderr: string
}

const runMsMax = 60_000
const fetchMsMax = 240_000
// Only a hang takes this long, also on a busy machine.
const startMsMax = 150_000
const stopMsMax = 20_000
const outputMsMax = 1_000

/** The exit code of a program, `null` if it took too long, and its output. Rejects if it cannot be started. */
export async function run(
  program: string,
  args: readonly string[],
  { stdin = '', environment = {}, msMax = runMsMax, ...options }: RunOptions = {},
): Promise<RunResult> {
  const child = spawn(program, args, {
    ...options,
    env: { ...process.env, ...environment },
    stdio: 'pipe',
    ...(msMax < Infinity && { timeout: msMax }),
    killSignal: 'SIGKILL',
  })
  const { promise: closed, resolve, reject } = Promise.withResolvers<number | null>()
  child.once('error', cause => reject(new Error(`${program} cannot be started`, { cause })))
  // A process that the program left behind may hold its output open for as long as it lives.
  const letGo = () => [child.stdout, child.stderr].forEach(stream => void stream.destroy())
  child.once('exit', () => setTimeout(letGo, outputMsMax).unref())
  child.once('close', resolve)
  const [stdout, stderr] = [chunksOf(child.stdout), chunksOf(child.stderr)]
  // A program may end before it has read its whole input. The exit code tells whether that is an error.
  child.stdin.on('error', () => undefined)
  if (typeof stdin === 'string') child.stdin.end(stdin)
  else stdin.pipe(child.stdin)
  const code = await closed
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}

/** What has been read of a stream, also if it is destroyed before its end. */
function chunksOf(stream: Readable): Buffer[] {
  const chunks: Buffer[] = []
  stream.on('data', chunk => chunks.push(chunk))
  return chunks
}

/** What a program prints on stdout. Throws with the end of its output if it fails. */
export async function outputOf(
  program: string,
  args: readonly string[],
  options?: RunOptions,
): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, options)
  if (code === 0) return stdout
  throw new Error(`${program} ended with ${code}: ${`${stdout}\n${stderr}`.trim().slice(-4_000)}`)
}

/** Runs a program that downloads something. Throws with the first error of its output if it fails. */
export async function fetched(program: string, args: readonly string[], options?: RunOptions): Promise<void> {
  const { code, stdout, stderr } = await run(program, args, { msMax: fetchMsMax, ...options })
  if (code === 0) return
  const lines = `${stdout}\n${stderr}`.split('\n').filter(line => line.trim() !== '')
  const error = lines.find(line => line.includes('ERROR')) ?? lines[0] ?? 'no output'
  throw new Error(`${program} ended with ${code}: ${error}`)
}

/** How Go builds a program that runs only a few times: no optimiser, no C. Kustomize then takes two thirds of the CPU to build. */
export const quickBuild = ['-buildvcs=false', '-gcflags=all=-N -l', '-ldflags=-s -w']
export const withoutC = { CGO_ENABLED: '0' }

/** Downloads and builds what is missing. Never rejects: the requirement's reason says what is not available. */
export async function requirementOf(name: string, prepare: () => Promise<void>): Promise<Requirement> {
  try {
    mkdirSync(cacheFolder, { recursive: true })
    await prepare()
    return { isMet: true, reason: '' }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { isMet: false, reason: `${name} cannot be run: ${reason}` }
  }
}

const atExit = new Map<ChildProcess, NodeJS.Signals>()
process.on('exit', () => {
  for (const [child, signal] of atExit) child.kill(signal)
})

/** Ends the program with this process: a run that is aborted closes nothing. */
export function killAtExit(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): void {
  atExit.set(child, signal)
  child.once('exit', () => atExit.delete(child))
}

/** Resolves when the program answers. If it ends or takes too long, kills it and rejects with the end of its output. */
export async function untilAnswers(
  child: ChildProcess,
  name: string,
  answers: () => Promise<unknown>,
  output = () => '',
): Promise<void> {
  const deadline = performance.now() + startMsMax
  let cause: unknown
  const noted = (error: unknown) => {
    cause = error
  }
  while (!(await answers().catch(noted))) {
    if (hasEnded(child) || performance.now() > deadline) {
      await endProgram(child)
      const end = output().slice(-4_000)
      throw new Error(`${name} did not start (exit code ${child.exitCode}):\n${end}`, { cause })
    }
    await sleep(50)
  }
}

/** Ends the program; if the signal does not, kills it. */
export async function endProgram(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (hasEnded(child)) return
  const exit = once(child, 'exit')
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  await exit
  clearTimeout(timer)
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null
