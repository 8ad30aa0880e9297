/**
 * Loads the real Kickstarter table as change events with five percent of noise, and computes what the read model must contain
 * when all of it has arrived: the truth. `kickstarter-answers.ts` compares the two.
 */

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, vi } from 'vitest'
import { lagRecords } from '../../../services/log/port.ts'
import type { CommandResult, ServiceProcess } from '../deployment/service-process.ts'
import { keepFolder } from '../runner/keep-folder.ts'
import { cacheFolder } from '../runner/programs.ts'
import { kickstarterFolder } from '../runner/requirements.ts'
import { quickGenerator } from './kickstarter-generator.ts'

export interface Truth {
  /** Public campaigns by id. */
  campaigns: Record<string, TruthCampaign>
  totals: {
    projects_total: number
    projects_live: number
    projects_funded: number
    total_pledges: number
    total_raised: number
    total_raised_minor: number
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
export type RunCommand = (args: readonly string[]) => Promise<CommandResult>

const eventsName = 'events.ndjson'
const truthName = 'truth.json'

export interface Appended {
  appended: number
  elapsed_ms: number
}

interface Generated {
  eventsFile: string
  truth: Truth
}

/** Appends the events through the command line. */
export async function appendKickstarter(
  command: RunCommand,
  { eventsFile, truth }: Generated,
): Promise<Appended & { truth: Truth }> {
  const { code, stdout, stderr } = await command(['events', 'append', eventsFile, '--json'])
  expect(code, stderr).toBe(0)
  return { ...(JSON.parse(stdout) as Appended), truth }
}

/**
 * The events of the whole table, or of its first campaigns, as a file, and the truth. They are generated once, and kept in
 * node_modules/.cache (410 MB for the whole).
 */
export async function generatedKickstarter(campaignsMax?: number): Promise<Generated> {
  const sources = ['kickstarter-to-events.mjs', 'kickstarter-2018-sample.csv'].map(name =>
    fileURLToPath(new URL(name, kickstarterFolder)),
  )
  const hash = createHash('sha256')
  for (const source of sources) hash.update(readFileSync(source))
  const part = campaignsMax === undefined ? '' : `-${campaignsMax}`
  const folder = join(cacheFolder, `kickstarter-${hash.digest('hex').slice(0, 12)}${part}`)
  const bound = campaignsMax === undefined ? [] : ['--campaigns', `${campaignsMax}`]
  await keepFolder(folder, part => generateInto(part, [...sources, ...bound]))
  const truth = JSON.parse(readFileSync(join(folder, truthName), 'utf8')) as Truth
  return { eventsFile: join(folder, eventsName), truth }
}

async function generateInto(folder: string, [generator = '', ...table]: readonly string[]): Promise<void> {
  const events = openSync(join(folder, eventsName), 'w')
  const args = [...table, '--noise', '0.05', '--truth', join(folder, truthName)]
  const script = quickGenerator(generator, folder)
  const generating = spawn(process.execPath, [script, ...args], { stdio: ['ignore', events, 'inherit'] })
  closeSync(events)
  const [code] = await once(generating, 'exit')
  expect(code, 'the exit code of kickstarter-to-events.mjs').toBe(0)
}

/** The headers of a key that is issued to this account. */
export async function issueCredentials(
  command: RunCommand,
  account: string,
): Promise<Record<string, string>> {
  const owner = ['--name', 'Example', '--url', 'https://example.com', '--email', 'a@example.com']
  const { code, stdout, stderr } = await command(['keys', 'issue', '--json', '--account', account, ...owner])
  expect(code, stderr).toBe(0)
  const { key, secret } = JSON.parse(stdout) as { key: string; secret: string }
  return { 'X-API-Key': key, 'X-API-Secret': secret }
}

/** The headers as options of curl. */
export function headerFlags(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `-H '${name}: ${value}'`)
    .join(' ')
}

/** What a projector process reports on its ops port. */
export interface ProjectionStatus {
  projector: {
    failure: string | null
    /** Committed by this run. */
    records: number
    rejects: number
    /** Of the partitions that it is assigned. */
    lag: { topic: string; partition: number; committed: number; end: number }[]
  }
  fold: { pending_batches: number; quarantine: unknown[] }
}

export async function projectionStatus({ opsUrl }: ServiceProcess): Promise<ProjectionStatus> {
  return (await (await fetch(`${opsUrl}/status`)).json()) as ProjectionStatus
}

// Only a hang takes this long, also on a busy machine.
const drainMsMax = 240_000

/** Resolves when everything in the log is folded. */
export async function untilDrained(...projectors: readonly ServiceProcess[]): Promise<void> {
  // A look is a dozen queries, so they become rarer: what is waited for needs the CPU.
  let pauseMs = 0
  await vi.waitFor(
    async () => {
      await delay(pauseMs)
      pauseMs = Math.min(2 * pauseMs + 100, 2_000)
      const statuses = await Promise.all(projectors.map(projectionStatus))
      const lag = statuses.flatMap(({ projector }) => projector.lag)
      expect({
        // It has none if the broker has not given it its partitions within ten seconds.
        hasPartitions: lag.length > 0 || projectors.length === 0,
        waiting: lagRecords(lag),
        pending: statuses.map(({ fold }) => fold.pending_batches),
        // On a busy machine a campaign may come into quarantine: its batch counts as folded before the campaign is.
        quarantine: statuses.flatMap(({ fold }) => fold.quarantine),
        failures: statuses.map(({ projector }) => projector.failure),
      }).toEqual({
        hasPartitions: true,
        waiting: 0,
        pending: projectors.map(() => 0),
        quarantine: [],
        failures: projectors.map(() => null),
      })
    },
    { timeout: drainMsMax, interval: 100 },
  )
}

/**
 * Resolves when this projector leads the fold. `keys issue` gives a key up that is not folded within 15 s: on a busy machine, the start
 * of a projector takes most of that time.
 */
export async function untilLeads({ opsUrl }: ServiceProcess): Promise<void> {
  const leads = async () => /^pledgeview_is_leader 1$/m.test(await (await fetch(`${opsUrl}/metrics`)).text())
  await vi.waitUntil(leads, { timeout: drainMsMax, interval: 100 })
}

/** Resolves when the API accepts the key: it looks for new ones twice a second. */
export async function untilAccepted(apiUrl: string, headers: Record<string, string>): Promise<void> {
  const isAccepted = async () => (await fetch(`${apiUrl}/projects?limit=1`, { headers })).status === 200
  await vi.waitUntil(isAccepted, { timeout: drainMsMax, interval: 100 })
}

/** The most memory that a process has used, MB. It is printed, so that runs can be compared. */
export function peakMemoryMb(name: string, { child }: Pick<ServiceProcess, 'child'>): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
  const peakMb = Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024)
  console.log(`peak memory of ${name}: ${peakMb} MB`)
  return peakMb
}
