/** An embedded service as a process, on a small platform. Tests run rebuilds beside it, watch them and interrupt them. */

import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { isWorking, type WorkPhase, workPhases } from '../../../services/generations/rebuild-log.ts'
import { rebuildStatus } from '../../../services/generations/rebuilds.ts'
import { openDataDirectory, readServiceAddress } from '../../../services/local/data-directory.ts'
import { openRunningTables } from '../../../services/local/tables.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { lagRecords } from '../../../services/log/port.ts'
import type { ProjectListBody } from '../../../services/query/endpoints/projects.ts'
import type { Stats } from '../../../services/query/endpoints/stats.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import {
  type CommandResult,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../deployment/service-process.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../events/sample-events.ts'

// Small steps, so that each phase takes several tenths of a second. Answers are not cached for longer than that.
const settings = {
  PLEDGEVIEW_LOG_LEVEL: 'warn',
  PLEDGEVIEW_BATCH_RECORDS_MAX: '30',
  PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: '2',
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
  PLEDGEVIEW_CACHE_MS: '20',
  PLEDGEVIEW_STATS_CACHE_MS: '20',
}
/** Makes reading take many seconds, for tests that have to act before it ends. */
export const slowly = { PLEDGEVIEW_BATCH_RECORDS_MAX: '4' }
const askMs = 10
// Only a hang takes this long, also on a busy machine.
const readyMsMax = 120_000
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']

/** What the last line of `rebuild --json` says. */
export interface ResultLine {
  type: 'result'
  id: string
  outcome: string
  seconds: Record<string, number>
  records: number
  differences: { same: number; added: number; removed: number; different: number } | null
  failure: string | null
}

/** All campaigns in the order of their backers, and digests of everything that the API says of them and the platform. */
export interface Answers {
  ids: string[]
  digest: string
  /** Without `updated_at`. */
  contentDigest: string
}

type Report = NonNullable<Awaited<ReturnType<typeof rebuildStatus>>>

export interface RebuildService {
  root: string
  process(): ServiceProcess
  append(events: Iterable<ChangeEvent>): Promise<void>
  /** Starts it, or restarts it, and resolves when everything is folded. */
  start(): Promise<void>
  /** Runs `rebuild` with these arguments to its end. */
  rebuild(...args: string[]): Promise<CommandResult>
  /** The latest rebuild in the tables of the running service. */
  report(): Promise<Report | undefined>
  /**
   * Resolves when the running or the next rebuild has reached this phase, or has ended. With `id`, it is that rebuild, which may have
   * ended before the call: it would wait for a next one for ever.
   */
  untilPhase(phase: WorkPhase, id?: string): Promise<void>
  /** What the API answers now. Fails if the status is not 200. */
  answers(): Promise<Answers>
  /** The campaigns that changed at this time (ISO 8601) or later, according to the API. */
  changedSince(time: string): Promise<string[]>
  /** Asks again and again until it is stopped. Then returns how often it asked, and the answers that differ from `truth`. */
  askOn(truth: Answers): { stop(): Promise<{ count: number; others: unknown[] }> }
  /** Whether there are the tables of another generation. */
  hasOther(): boolean
  close(): Promise<void>
}

/** Campaigns with pledges that are all over, so that their answers do not change by themselves. */
export function smallPlatform(): ChangeEvent[] {
  return Array.from({ length: 40 }, (_, n) => {
    const campaign_id = `c${n}`
    const pledges = Array.from({ length: 20 + n }, (_, p) =>
      pledgeEvent({ campaign_id, pledge_id: `p${p}`, backer_id: `b${(n + p) % 31}` }),
    )
    return [campaignEvent({ campaign_id, end_date: Date.UTC(2026, 1, 2) }), ...pledges]
  }).flat()
}

/** With an API key, and not started yet. */
export async function makeRebuildService(): Promise<RebuildService> {
  const directory = makeDataDirectory()
  const files = openDataDirectory(directory.path)
  const writer = await openJournalWriter(files.journal)
  let service: ServiceProcess | undefined
  let credentials: { key: string; secret: string } | undefined

  const command = (args: string[], own: Readonly<Record<string, string>> = settings) =>
    runCli([...args, '--data-dir', directory.path], undefined, own)

  async function get(path: string): Promise<{ status: number; body: string }> {
    const headers = { 'x-api-key': credentials?.key ?? '', 'x-api-secret': credentials?.secret ?? '' }
    const response = await fetch(`${service?.apiUrl}${path}`, { headers })
    return { status: response.status, body: await response.text() }
  }

  async function ask(path: string): Promise<string> {
    const { status, body } = await get(path)
    if (status !== 200) throw new Error(`${path} was answered with ${status}: ${body}`)
    return body
  }

  const list = async (query: string) =>
    JSON.parse(await ask(`/projects?limit=100${query}`)) as ProjectListBody

  async function answers(): Promise<Answers> {
    const { data, pagination } = await list('&sort=most_backed')
    const { data: stats } = JSON.parse(await ask('/stats')) as { data: Stats }
    const digestOf = (rows: unknown[]) =>
      createHash('sha256')
        .update(JSON.stringify([rows, pagination, { ...stats, generated_at: null }]))
        .digest('hex')
    const contents = data.map(({ updated_at: _, ...content }) => content)
    return { ids: data.map(({ id }) => id), digest: digestOf(data), contentDigest: digestOf(contents) }
  }

  async function report(): Promise<Report | undefined> {
    const address = readServiceAddress(files)
    if (!address) throw new Error('the service does not run')
    const place = await openRunningTables(address.clickhouse, readConfig({}))
    try {
      return await rebuildStatus(place)
    } finally {
      await place.tables.close()
    }
  }

  return {
    root: directory.path,
    process() {
      if (!service) throw new Error('the service is not started')
      return service
    },
    append: events => writer.append([...events].map(newRecordOf)),

    async start() {
      service = await startServiceProcess(['--no-demo', '--data-dir', directory.path], settings)
      credentials ??= JSON.parse((await command(['keys', 'issue', ...identity, '--json'])).stdout)
      const isReady = async () => (await waiting(service)) === 0 && (await get('/stats')).status === 200
      await vi.waitUntil(isReady, { timeout: readyMsMax, interval: 20 })
    },

    rebuild: (...args) => command(['rebuild', ...args]),
    report,

    async untilPhase(phase, id) {
      const first = await report()
      const before = first && first.id !== id && !isWorking(first) ? first.id : undefined
      const phasesFrom = new Set<string>(workPhases.slice(workPhases.indexOf(phase)))
      const isReached = async () => {
        const state = await report()
        return state && state.id !== before && (!isWorking(state) || phasesFrom.has(state.phase))
      }
      await vi.waitUntil(isReached, { timeout: readyMsMax, interval: 5 })
    },

    answers,

    async changedSince(time) {
      const { data } = await list(`&updated_since=${encodeURIComponent(time)}`)
      return data.map(({ id }) => id)
    },

    askOn(truth) {
      let isOver = false
      async function run() {
        const others: unknown[] = []
        let count = 0
        for (; !isOver; count++, await delay(askMs)) {
          const answer = await answers().catch((error: Error) => ({ digest: error.message }))
          if (answer.digest !== truth.digest) others.push(answer)
        }
        return { count, others }
      }
      const asking = run()
      return {
        async stop() {
          isOver = true
          return asking
        },
      }
    },

    hasOther: () =>
      new Set(
        readdirSync(join(files.tables, 'metadata')).flatMap(name => /_ledger_\d+/.exec(name)?.[0] ?? []),
      ).size > 1,

    async close() {
      await service?.stop()
      await writer.close()
      directory.remove()
    },
  }
}

/** Records, batches and set-aside campaigns that are not in the read tables yet. */
async function waiting(service: ServiceProcess | undefined): Promise<number> {
  const response = await fetch(`${service?.opsUrl}/status`)
  const { projector, fold } = (await response.json()) as {
    projector: { lag: { committed: number; end: number }[] }
    fold: { pending_batches: number; quarantine: unknown[] }
  }
  // On a busy machine a campaign may be set aside: its batch counts as folded before the campaign is.
  return lagRecords(projector.lag) + fold.pending_batches + fold.quarantine.length
}

/** The objects that a command with --json printed. */
export function linesOf({ stdout }: CommandResult): { type: string; phase: string }[] {
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
}

export function resultOf(command: CommandResult): ResultLine {
  return linesOf(command).at(-1) as unknown as ResultLine
}
