/**
 * Schemathesis, which nobody here wrote: it reads an OpenAPI document and tries whatever the document allows and forbids on
 * the service that serves it. From PyPI, into a virtual environment among the caches.
 *
 * Whether it can be had is a requirement like any other: without Python, its venv module or the network a suite says so.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Requirement } from '../support/requirements.ts'

const version = '4.32.5'
const cacheFolder = new URL('../../node_modules/.cache/pledgeview/', import.meta.url).pathname
const environment = join(cacheFolder, `schemathesis-${version}`)
// Written last, so that a broken installation is never taken for a whole one.
const installedMark = join(environment, 'installed')
const installMsMax = 240_000
const runMsMax = 60_000

export interface FuzzTarget {
  /** Where the OpenAPI document is. */
  documentUrl: string
  /** Up to and including `/api/v1`. */
  apiUrl: string
  key: string
  secret: string
  /** Where it may leave files. */
  directory: string
}

/** Installs it where it is not there yet. Never rejects: what is missing is the requirement's reason. */
export async function schemathesisRequirement(): Promise<Requirement> {
  try {
    if (!existsSync(installedMark)) {
      mkdirSync(cacheFolder, { recursive: true })
      await install('python3', '-m', 'venv', '--clear', environment)
      await install(
        join(environment, 'bin/python'),
        '-m',
        'pip',
        'install',
        '--quiet',
        `schemathesis==${version}`,
      )
      writeFileSync(installedMark, '')
    }
    return { isMet: true, reason: '' }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { isMet: false, reason: `Schemathesis ${version} cannot be run: ${reason}` }
  }
}

/**
 * Tries the API with every check that it has, up to `examplesMax` requests an operation and phase; the seed decides which.
 * `code` is 0 where nothing was found, and null where it took longer than a minute.
 */
export function runSchemathesis(
  { documentUrl, apiUrl, key, secret, directory }: FuzzTarget,
  { seed, examplesMax }: { seed: number; examplesMax: number },
): Promise<{ code: number | null; output: string }> {
  return run(
    join(environment, 'bin/schemathesis'),
    [
      ...['run', documentUrl, '--url', apiUrl, '--header', `Authorization: Bearer ${key}:${secret}`],
      ...[
        '--seed',
        String(seed),
        '--max-examples',
        String(examplesMax),
        '--continue-on-failure',
        '--no-color',
      ],
    ],
    { cwd: directory, timeout: runMsMax },
  )
}

async function install(program: string, ...args: string[]): Promise<void> {
  const { code, output } = await run(program, args, { cwd: cacheFolder, timeout: installMsMax })
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${output.trim().split('\n').at(-1)}`)
}

async function run(program: string, args: readonly string[], bounds: { cwd: string; timeout: number }) {
  const child = spawn(program, args, { ...bounds, stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'exit').catch(cause => {
    throw new Error(`${program} cannot be started`, { cause })
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  return { code: code as number | null, output: stdout + stderr }
}
