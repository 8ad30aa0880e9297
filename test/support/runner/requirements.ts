/**
 * What a suite needs in addition to Node, and what happens if it is missing: in CI the suite fails. On other machines it is
 * skipped with the reason, which the summary repeats.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { TestContext } from 'vitest'

/** Something that may be missing, and the reason to print then. */
export interface Requirement {
  isMet: boolean
  reason: string
  /** The source of a service, with its name; the summary of the run prints it once. */
  source?: string | undefined
  /** CI may do without it, because somebody said so in its settings. */
  isOptional?: boolean
}

/** The real Kickstarter table, in a folder beside the project; it is not shipped with it. */
export const kickstarterFolder = new URL('../../../../shared/data/', import.meta.url)
export const kickstarterTable: Requirement = {
  isMet: existsSync(new URL('kickstarter-2018-sample.csv', kickstarterFolder)),
  reason: 'the real Kickstarter table is not at ../shared/data',
  // Its licence does not let the project ship it, so a public CI does not have it.
  isOptional: process.env.PLEDGEVIEW_TEST_KICKSTARTER === 'none',
}

/** A shell with curl, as the printed lines want it. */
export const shellWithCurl: Requirement = {
  isMet: spawnSync('curl', ['--version']).status === 0,
  reason: 'curl is not installed (apt-get install curl)',
}

declare module 'vitest' {
  interface TaskMeta {
    sources?: string[]
    /** If it is skipped, CI does not count it as a failure. */
    isOptional?: boolean
  }
}

/** Call first in a test, or in a `beforeEach`. */
export function needs(context: TestContext, requirement: Requirement): void {
  if (requirement.isMet) {
    const { meta } = context.task
    if (requirement.source) meta.sources = [...(meta.sources ?? []), requirement.source]
    return
  }
  if (process.env.CI === 'true' && !requirement.isOptional)
    throw new Error(`CI requires it: ${requirement.reason}`)
  context.task.meta.isOptional = requirement.isOptional === true
  context.skip(requirement.reason)
}
