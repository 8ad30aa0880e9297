/**
 * Runs oasdiff, an independent tool that compares two OpenAPI documents and knows which differences break a client. It is
 * built from the Go module proxy into the cache directory.
 *
 * It is a requirement like any other: without Go or the network, the suite is skipped with the reason.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { quickBuild, withoutC } from '../support/runner/programs.ts'
import type { Requirement } from '../support/runner/requirements.ts'

const version = 'v1.18.3'
const folder = fileURLToPath(
  new URL(`../../node_modules/.cache/pledgeview/oasdiff-${version}`, import.meta.url),
)
const program = join(folder, 'oasdiff')
const buildMsMax = 300_000
const runMsMax = 60_000
const outputBytesMax = 64 * 1024 * 1024

const execute = promisify(execFile)

/** Builds the tool if it is missing. Never rejects: what is missing becomes the reason of the requirement. */
export async function oasdiffRequirement(): Promise<Requirement> {
  try {
    mkdirSync(folder, { recursive: true })
    // Go renames the finished program, so one that is there is whole.
    if (!existsSync(program)) {
      await execute('go', ['install', ...quickBuild, `github.com/oasdiff/oasdiff@${version}`], {
        env: { ...process.env, ...withoutC, GOBIN: folder },
        timeout: buildMsMax,
      })
    }
    return { isMet: true, reason: '' }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return { isMet: false, reason: `oasdiff ${version} cannot be built: ${reason}` }
  }
}

/** A difference that breaks or may break clients, as the tool names it. */
export interface BreakingChange {
  id: string
  text: string
  operation: string
  path: string
}

/**
 * What a client of the released document cannot rely on any more in the present one. What the tool only warns of is part of
 * it: a new status, or a header or a parameter that is gone, breaks the clients that use it.
 */
export async function breakingChanges(released: string, present: string): Promise<BreakingChange[]> {
  const args = ['breaking', '--format', 'json', released, present]
  const { stdout } = await execute(program, args, { timeout: runMsMax, maxBuffer: outputBytesMax })
  return JSON.parse(stdout)
}
