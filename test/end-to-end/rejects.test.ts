/** Rejects of an embedded service: retried from another process while it runs, and too many of them. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import {
  openDataDirectory,
  readServiceAddress,
  type ServiceAddress,
} from '../../services/local/data-directory.ts'
import { openRunningTables } from '../../services/local/tables.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import { readConfig } from '../../services/runtime/config.ts'
import { journalEnds } from '../support/journal-positions.ts'
import { issueCredentials } from '../support/kickstarter.ts'
import { storeAt } from '../support/reject-filters.ts'
import { campaignEvent, newRecordOf, noEvent, pledgeEvent } from '../support/sample-events.ts'
import {
  launchProcess,
  makeDataDirectory,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../support/service-process.ts'

const directory = makeDataDirectory()
const journal = join(directory.path, 'journal.sqlite')
let service: ServiceProcess

beforeAll(async () => {
  service = await startServiceProcess(['--no-demo', '--data-dir', directory.path], {
    PLEDGEVIEW_STATS_CACHE_MS: '50',
  })
})

afterAll(async () => {
  await service?.stop('SIGKILL')
  directory.remove()
})

// Each wait is for several processes of a busy machine.
vi.setConfig({ testTimeout: 300_000 })

test('a retry beside a service that runs, killed and repeated, ends in the read model, and poison is not multiplied', async () => {
  const writer = await openJournalWriter(journal)
  await writer.append([noEvent])
  await writer.close()
  const pledges = Array.from({ length: 3_000 }, (_, n) =>
    pledgeEvent({ campaign_id: 'c', pledge_id: `p${n}` }),
  )
  const events = [campaignEvent({ campaign_id: 'c' }), ...pledges]
  const { clickhouse } = readServiceAddress(openDataDirectory(directory.path)) as ServiceAddress
  const { tables, databases } = await openRunningTables(clickhouse, readConfig({}))
  const rejectedAt = Date.now()
  await storeAt(
    tables,
    databases,
    events.map((event, offset) => {
      const record = { ...newRecordOf(event), partition: 0, offset: offset + 100_000, appendedAt: 0 }
      return { record, reason: 'schema id 2 is unknown for a pledge', rejectedAt }
    }),
  )
  await tables.close()
  await vi.waitFor(async () => expect(await rejectCount()).toBe(3_002), { timeout: 60_000 })
  const credentials = await issueCredentials(args => runCli([...args, '--data-dir', directory.path]), 'a')

  const retry = ['rejects', 'retry', '--all-matching', '--json', '--data-dir', directory.path]
  const { child, started } = launchProcess(retry)
  started.catch(() => {})
  await vi.waitFor(() => expect(journalEnds(journal).campaigns).toBeGreaterThan(1), {
    timeout: 60_000,
    interval: 1,
  })
  child.kill('SIGKILL')
  const { code, stdout, stderr } = await runCli(retry)
  expect(code, stderr).toBe(0)
  const outcome = JSON.parse(stdout)
  expect(outcome).toMatchObject({ matched: 3_002, no_event: 1, settled: 3_001, not_settled: 0 })
  // The ledger has some of what the first one appended.
  expect(outcome.retried + outcome.outdated).toBe(3_001)
  // Each pledge counts once, however often it was retried.
  await vi.waitFor(
    async () => {
      const response = await fetch(`${service.apiUrl}/stats`, { headers: credentials })
      const { data } = (await response.json()) as { data?: { projects_total: number; total_pledges: number } }
      expect(data).toMatchObject({ projects_total: 1, total_pledges: 3_000 })
    },
    { timeout: 60_000, interval: 1_000 },
  )
  expect(await rejectCount()).toBe(3_002)
})

test('a projector that stopped at too many rejects fails both probes, the API goes on, and no restart drains the log into rejects', async () => {
  const own = makeDataDirectory()
  const start = () =>
    startServiceProcess(['--no-demo', '--data-dir', own.path], { PLEDGEVIEW_REJECTS_MIN: '1' })
  let stopping = await start()
  onTestFinished(async () => {
    await stopping.stop('SIGKILL')
    own.remove()
  })
  const credentials = await issueCredentials(args => runCli([...args, '--data-dir', own.path]), 'a')
  const writer = await openJournalWriter(join(own.path, 'journal.sqlite'))
  await writer.append(Array.from({ length: 10 }, () => noEvent))
  await writer.close()
  for (let starts = 1; starts <= 2; starts++) {
    for (const [path, check] of [
      ['healthz', 'loop'],
      ['readyz', 'projector'],
    ] as const) {
      await vi.waitFor(
        async () => {
          const response = await fetch(`${stopping.opsUrl}/${path}`)
          const { checks } = (await response.json()) as { checks: Record<string, { detail: string }> }
          expect(response.status, path).toBe(503)
          expect(checks[check]?.detail, path).toContain('Too many of the recent records were rejected')
        },
        { timeout: 60_000, interval: 100 },
      )
    }
    expect((await fetch(`${stopping.apiUrl}/projects`, { headers: credentials })).status).toBe(200)
    // The code says that the projector stopped.
    expect(await rejectCount(own.path, 1)).toBe(0)
    expect(await stopping.stop()).toBe(0)
    stopping = await start()
  }
})

async function rejectCount(path = directory.path, expected = 0): Promise<number> {
  const { stdout, code, stderr } = await runCli(['status', '--json', '--data-dir', path])
  expect(code, stderr).toBe(expected)
  return (JSON.parse(stdout) as { rejects: { total: number } }).rejects.total
}
