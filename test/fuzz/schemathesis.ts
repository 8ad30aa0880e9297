/**
 * Runs Schemathesis, an independent tool. It reads an OpenAPI document and sends requests that the document allows or
 * forbids to the service. It is installed from PyPI into a virtual environment in the cache directory.
 *
 * It is an optional requirement: if Python, its venv module or the network is missing, the suite prints the reason.
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
// Written last, so that an incomplete installation is never used.
const installedMark = join(environment, 'installed')
const installMsMax = 240_000
// It takes up to 70 s beside other suites. Only a hang takes this long.
const runMsMax = 400_000

export interface FuzzTarget {
  /** The address of the OpenAPI document. */
  documentUrl: string
  /** The base address, including `/api/v1`. */
  apiUrl: string
  key: string
  secret: string
  /** A directory for its files. */
  directory: string
}

/** Installs the tool if it is missing. Never rejects: what is missing becomes the reason of the requirement. */
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
 * Tests the API with all checks, with up to `examplesMax` requests per operation and phase, chosen by the seed. `code`
 * is 0 if nothing was found, and null if the tool took longer than `runMsMax`.
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
