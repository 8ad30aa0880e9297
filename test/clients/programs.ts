/**
 * Runs programs that are not part of the project, and prepares their dependencies. These are cached in node_modules/.cache,
 * because CI and developers run the suites often.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepFolder } from '../support/runner/keep-folder.ts'
import {
  cacheFolder,
  fetched,
  outputOf as outputHere,
  type RunOptions,
  requirementOf,
} from '../support/runner/programs.ts'
import type { Requirement } from '../support/runner/requirements.ts'

// A hang ends with the test's own time. This is for a program that outlives its test.
const runMsMax = 150_000

/** The cache entry for the dependencies in a file. A change of the file gives another entry. */
export function cacheOf(name: string, file: string): string {
  const hash = createHash('sha256').update(readFileSync(file)).digest('hex')
  return join(cacheFolder, `${name}-${hash.slice(0, 12)}`)
}

/** A virtual environment with the packages that a file of requirements pins. `program`: the path of a program of it. */
export function pythonEnvironment(name: string, requirements: string) {
  const environment = cacheOf(name, requirements)
  // Written last, so that an incomplete installation never counts as complete.
  const installedMark = join(environment, 'installed')
  const program = (of: string) => join(environment, 'bin', of)
  return {
    program,
    requirement: (): Promise<Requirement> =>
      requirementOf(name, async () => {
        if (existsSync(installedMark)) return
        const uv = await installedUv()
        await fetched(uv, ['venv', '--quiet', '--clear', '--python', 'python3', environment], {
          environment: uvSettings,
        })
        const install = ['pip', 'install', '--quiet', '--python', program('python'), '-r', requirements]
        await fetched(uv, install, { environment: uvSettings })
        writeFileSync(installedMark, '')
      }),
  }
}

// It makes an environment with a tenth of the CPU of venv and pip, and there are eight of them.
const uvVersion = '0.13.9'
const uvFolder = join(cacheFolder, `uv-${uvVersion}`)
export const uvProgram = join(uvFolder, 'bin/uv')
export const uvSettings = { UV_CACHE_DIR: join(cacheFolder, 'uv'), UV_PYTHON_DOWNLOADS: 'never' }

/** The path of uv. It comes from PyPI, once. */
export async function installedUv(): Promise<string> {
  await keepFolder(uvFolder, async part => {
    await fetched('python3', ['-m', 'venv', part])
    await fetched(join(part, 'bin/pip'), ['install', '--quiet', '--no-compile', `uv==${uvVersion}`])
  })
  return uvProgram
}

/** The folder with packages of npm, after `requirement`. Each has its version. */
export function npmPackages(name: string, packages: readonly string[]) {
  const folder = join(cacheFolder, `${name}-${packages.map(of => of.split('@').at(-1)).join('-')}`)
  // Written last, so that an incomplete installation never counts as complete.
  const installedMark = join(folder, 'installed')
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund']
  return {
    folder,
    requirement: () =>
      requirementOf(name, async () => {
        if (existsSync(installedMark)) return
        await fetched('npm', ['install', '--prefix', folder, ...quiet, ...packages])
        writeFileSync(installedMark, '')
      }),
  }
}

/** What a program prints on stdout. Throws with the end of its output if it fails. */
export function outputOf(
  program: string,
  args: readonly string[],
  { environment, ...options }: RunOptions = {},
): Promise<string> {
  // Far from UTC, so that a time that is read in the machine's zone is noticed.
  const zone = { TZ: 'Asia/Tokyo' }
  return outputHere(program, args, { msMax: runMsMax, ...options, environment: { ...zone, ...environment } })
}

/** The path of a file, from this folder. */
export function path(name: string): string {
  return join(import.meta.dirname, name)
}
