/**
 * The real Kickstarter table as change events with five percent of noise, on its way into a read model, and what that
 * must say when all of it has come: the truth. `kickstarter-answers.ts` compares the two.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { expect, vi } from 'vitest'
import { kickstarterFolder } from './requirements.ts'
import type { CommandResult, ServiceProcess } from './service-process.ts'

export interface Truth {
  /** Public campaigns by id. */
  campaigns: Record<string, TruthCampaign>
  /** Slugs of campaigns that nobody may see. */
  hidden: string[]
  totals: {
    projects_total: number
    projects_live: number
    projects_funded: number
    total_pledges: number
    total_raised: number
    total_backers: number
    total_creators: number
    /** How many public campaigns, by category. */
    categories: Record<string, number>
  }
}

export interface TruthCampaign {
  slug: string
  status: string
  category: string
  currency: string
  /** Money is in major units. */
  goal_amount: number
  pledged_amount: number
  backer_count: number
  /** ISO 8601 with milliseconds. */
  launch_date: string
  end_date: string
  /** How often each tier was claimed. */
  claimed: Record<string, number>
}

/** Runs a command of the program on the deployment under test. */
export type RunCommand = (args: readonly string[], stdin?: Readable) => Promise<CommandResult>

export interface Appended {
  appended: number
  elapsed_ms: number
}

/** Appends the whole table through the command line; `truthFile` is a path that may be written. */
export async function appendKickstarter(
  command: RunCommand,
  truthFile: string,
): Promise<Appended & { truth: Truth }> {
  const generator = spawn(
    process.execPath,
    [
      new URL('kickstarter-to-events.mjs', kickstarterFolder).pathname,
      new URL('kickstarter-2018-sample.csv', kickstarterFolder).pathname,
      ...['--noise', '0.05', '--truth', truthFile],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const { code, stdout, stderr } = await command(['events', 'append', '-', '--json'], generator.stdout)
  expect(code, stderr).toBe(0)
  const truth = JSON.parse(readFileSync(truthFile, 'utf8')) as Truth
  return { ...(JSON.parse(stdout) as Appended), truth }
}

/** The headers of a key that is issued to this account. */
export async function issueCredentials(
  command: RunCommand,
  account: string,
): Promise<Record<string, string>> {
  const who = [
    '--account',
    account,
    '--name',
    'n',
    '--url',
    'https://example.com',
    '--email',
    'a@example.com',
  ]
  const { code, stdout, stderr } = await command(['keys', 'issue', '--json', ...who])
  expect(code, stderr).toBe(0)
  const { key, secret } = JSON.parse(stdout) as { key: string; secret: string }
  return { 'X-API-Key': key, 'X-API-Secret': secret }
}

/** What a process that projects says of itself on its ops port. */
export interface ProjectionStatus {
  projector: {
    failure: string | null
    /** Committed by this run. */
    records: number
    rejects: number
    /** Of the partitions that it holds. */
    lag: { topic: string; partition: number; committed: number; end: number }[]
  }
  fold: { pending_batches: number }
}

export async function projectionStatus({ opsUrl }: ServiceProcess): Promise<ProjectionStatus> {
  return (await (await fetch(`${opsUrl}/status`)).json()) as ProjectionStatus
}

const drainMsMax = 120_000

/** Resolves when all that is in the log is folded. */
export async function untilDrained(...projectors: readonly ServiceProcess[]): Promise<void> {
  await vi.waitFor(
    async () => {
      const statuses = await Promise.all(projectors.map(projectionStatus))
      const lag = statuses.flatMap(({ projector }) => projector.lag)
      expect({
        waiting: lag.reduce((sum, { committed, end }) => sum + end - committed, 0),
        pending: statuses.map(({ fold }) => fold.pending_batches),
        failures: statuses.map(({ projector }) => projector.failure),
      }).toEqual({ waiting: 0, pending: projectors.map(() => 0), failures: projectors.map(() => null) })
    },
    { timeout: drainMsMax, interval: 200 },
  )
}

/** The most memory that a process has had in use, MB; printed, so that a run can be compared with the next. */
export function peakMemoryMb(name: string, { child }: Pick<ServiceProcess, 'child'>): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const peakMb = Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
  console.log(`peak memory of ${name}: ${peakMb} MB`)
  return peakMb
}
