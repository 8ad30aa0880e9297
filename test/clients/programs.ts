/**
 * Runs programs that are not part of the project, and prepares their dependencies. These are cached in node_modules/.cache,
 * because CI and developers run the suites often.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Requirement } from '../support/runner/requirements.ts'

export const cacheFolder = new URL('../../node_modules/.cache/pledgeview/', import.meta.url).pathname
const fetchMsMax = 240_000
// A hang ends with the test's own time. This is for a program that outlives its test.
const runMsMax = 150_000

/** The cache entry for the dependencies in a file. A change of the file gives another entry. */
export function cacheOf(name: string, file: string): string {
  const hash = createHash('sha256').update(readFileSync(file)).digest('hex')
  return join(cacheFolder, `${name}-${hash.slice(0, 12)}`)
}

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

export interface PythonEnvironment {
  /** The path of a program of it. */
  program(name: string): string
  requirement(): Promise<Requirement>
}

/** A virtual environment with the packages that a file of requirements pins. */
export function pythonEnvironment(name: string, requirements: string): PythonEnvironment {
  const environment = cacheOf(name, requirements)
  // Written last, so that an incomplete installation never counts as complete.
  const installedMark = join(environment, 'installed')
  const program = (of: string) => join(environment, 'bin', of)
  return {
    program,
    requirement: () =>
      requirementOf(name, async () => {
        if (existsSync(installedMark)) return
        await fetched('python3', ['-m', 'venv', '--clear', environment])
        const pip = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check']
        await fetched(program('python'), [...pip, '-r', requirements])
        writeFileSync(installedMark, '')
      }),
  }
}

/** Runs a program that downloads something. Throws with the first line of its output if it fails. */
export async function fetched(program: string, args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await run(program, args, { msMax: fetchMsMax })
  if (code === 0) return
  const firstError = `${stdout}\n${stderr}`.split('\n').find(line => line.trim() !== '') ?? 'no output'
  throw new Error(`${program} ended with ${code}: ${firstError}`)
}

export interface RunOptions {
  stdin?: string
  cwd?: string
  environment?: Readonly<Record<string, string>>
  msMax?: number
}

/** What a program prints on stdout. Throws with the end of its output if it fails. */
export async function outputOf(
  program: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, { msMax: runMsMax, ...options })
  if (code === 0) return stdout
  throw new Error(`${program} ended with ${code}: ${`${stdout}\n${stderr}`.slice(-4_000)}`)
}

/** The exit code of a program, `null` if it took too long, and its output. */
export async function run(
  program: string,
  args: readonly string[],
  { stdin = '', cwd, environment, msMax }: RunOptions & { msMax: number },
) {
  // Far from UTC, so that a time that is read in the machine's zone is noticed.
  const env = { ...process.env, TZ: 'Asia/Tokyo', ...environment }
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: msMax, env, cwd })
  const exit = once(child, 'exit').catch(cause => {
    throw new Error(`${program} cannot be started`, { cause })
  })
  child.stdin.on('error', () => {})
  child.stdin.end(stdin)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  return { code: code as number | null, stdout, stderr }
}
