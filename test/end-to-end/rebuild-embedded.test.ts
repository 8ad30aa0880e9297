/** `pledgeview rebuild` on an embedded service, as its users run it: cut off, refused and continued. What it changes: test/integration/generations. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDataDirectory, readServiceAddress } from '../../services/embedded/data-directory.ts'
import { openRunningTables } from '../../services/embedded/tables.ts'
import { workPhases } from '../../services/generations/rebuild-log.ts'
import { rebuildStatus } from '../../services/generations/rebuilds.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import { lagRecords } from '../../services/log/port.ts'
import type { ProjectListBody } from '../../services/query/endpoints/projects.ts'
import { readConfig } from '../../services/runtime/config.ts'
import {
  type CommandResult,
  launchProcess,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/deployment/service-process.ts'
import type { StatusOutput } from '../support/deployment/status.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../support/events/sample-events.ts'

// Only a hang takes as long as this, also on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })
const soon = { timeout: 120_000, interval: 20 }
const settings = {
  PLEDGEVIEW_LOG_LEVEL: 'warn',
  PLEDGEVIEW_CACHE_MS: '20',
  PLEDGEVIEW_REQUESTS_PER_MINUTE_MAX: '1000000',
}
// Reading takes many seconds, so that there is time to act before it ends; and folding, with a statement a campaign.
const slowReading = { PLEDGEVIEW_BATCH_RECORDS_MAX: '4' }
const slowFolding = { PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: '1' }
const order: readonly string[] = workPhases
const identity = ['--account', 'a', '--name', 'n', '--url', 'https://example.com', '--email', 'a@example.com']
const campaigns = 40

const directory = makeDataDirectory()
const root = directory.path
const files = openDataDirectory(root)
let service: ServiceProcess
let credentials: { key: string; secret: string }
let truth: ProjectListBody['data']

beforeAll(async () => {
  const writer = await openJournalWriter(files.journal)
  // They are all over, so that their answers do not change by themselves.
  const events = Array.from({ length: campaigns }, (_, n) => {
    const campaign_id = `c${n}`
    const pledges = Array.from({ length: 20 + n }, (_, p) => pledgeEvent({ campaign_id, pledge_id: `p${p}` }))
    return [campaignEvent({ campaign_id, end_date: Date.UTC(2026, 1, 2) }), ...pledges]
  })
  await writer.append(events.flat().map(newRecordOf))
  await writer.close()
  await start()
  const issued = await runCli(
    ['keys', 'issue', ...identity, '--json', '--data-dir', root],
    undefined,
    settings,
  )
  credentials = JSON.parse(issued.stdout)
  truth = await vi.waitFor(answers, soon)
  expect(truth).toHaveLength(campaigns)
})

afterAll(async () => {
  await service?.stop()
  directory.remove()
})

test('drop is refused while a command rebuilds; when that is interrupted, it leaves nothing', async () => {
  const running = await launchProcess(['rebuild', '--data-dir', root], slowReading, 'reading log').started
  expect(await rebuild('drop')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('interrupt its command'),
  })
  expect(await running.stop('SIGINT')).toBe(1)
  expect(await rebuild('drop')).toMatchObject({ code: 0 })
  expect(generations()).toBe(1)
  expect(await answers()).toEqual(truth)
})

test('killed, it goes on with the same command, also after a restart of the service, and once it has ended, drop comes first', async () => {
  const { child, started } = launchProcess(['rebuild', '--data-dir', root], slowFolding, 'never said')
  started.catch(() => undefined)
  const exit = once(child, 'exit')
  const killed = await vi.waitUntil(async () => {
    const state = await report()
    return order.indexOf(state?.phase ?? '') >= order.indexOf('folding') && state
  }, soon)
  child.kill('SIGKILL')
  await exit
  await service.stop()
  await start()
  expect(resultOf(await rebuild('--json'))).toMatchObject({
    id: killed.id,
    outcome: 'rebuilt',
    differences: { same: campaigns, different: 0 },
  })
  expect(await vi.waitFor(answers, soon)).toEqual(truth)
  // A promotion is no second projector.
  expect(service.output()).not.toContain('another projector')
  const refused = { code: 1, stdout: '', stderr: expect.stringContaining('pledgeview rebuild drop') }
  expect(await rebuild()).toMatchObject(refused)
  expect(generations()).toBe(2)
  expect(await rebuild('drop')).toMatchObject({ code: 0 })
  expect(generations()).toBe(1)
})

test('if no service runs, the command does it alone; interrupted it says how to continue, and does', async () => {
  await service.stop()
  const interrupted = await launchProcess(['rebuild', '--data-dir', root], slowReading, 'reading log').started
  expect(await interrupted.stop('SIGINT')).toBe(1)
  expect(interrupted.output()).toContain('Run the same command again to continue')
  expect(await rebuild('status')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('it was interrupted'),
  })
  expect(resultOf(await rebuild('--json'))).toMatchObject({
    outcome: 'rebuilt',
    differences: { same: campaigns },
  })
  await start()
  expect(await vi.waitFor(answers, soon)).toEqual(truth)
})

/** Starts the service, and resolves when everything is folded. */
async function start(): Promise<void> {
  service = await startServiceProcess(['--no-demo', '--data-dir', root], settings)
  await vi.waitUntil(async () => {
    const { projector, fold } = (await (await fetch(`${service.opsUrl}/status`)).json()) as StatusOutput
    // On a busy machine a campaign may be set aside: its batch counts as folded before the campaign is.
    return lagRecords(projector.lag) + fold.pending_batches + fold.quarantine.length === 0
  }, soon)
}

/** Runs `rebuild` with these arguments to its end. */
function rebuild(...args: string[]): Promise<CommandResult> {
  return runCli(['rebuild', ...args, '--data-dir', root], undefined, settings)
}

/** The last line of `rebuild --json`, which must succeed. */
function resultOf({ code, stdout, stderr }: CommandResult): unknown {
  expect(code, stderr).toBe(0)
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

/** The latest rebuild in the tables of the running service. */
async function report() {
  const address = readServiceAddress(files)
  if (!address) throw new Error('the service does not run')
  const place = await openRunningTables(address.clickhouse, readConfig({}))
  try {
    return await rebuildStatus(place)
  } finally {
    await place.tables.close()
  }
}

/** All campaigns as the API shows them now, each with its `updated_at`. */
async function answers(): Promise<ProjectListBody['data']> {
  const headers = { 'x-api-key': credentials.key, 'x-api-secret': credentials.secret }
  const response = await fetch(`${service.apiUrl}/projects?limit=100`, { headers })
  expect(response.status).toBe(200)
  return ((await response.json()) as ProjectListBody).data
}

/** How many have tables. */
function generations(): number {
  const names = readdirSync(join(files.tables, 'metadata'))
  return new Set(names.flatMap(name => /_ledger_\d+/.exec(name)?.[0] ?? [])).size
}
