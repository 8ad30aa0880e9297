/** Rejects of an embedded service, retried from another process while it runs. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openJournalInspector } from '../../services/shared/event-log/journal/inspector.ts'
import { openJournalReader, openJournalWriter } from '../../services/shared/event-log/journal/journal.ts'
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
  service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
})

afterAll(async () => {
  await service?.stop('SIGKILL')
  directory.remove()
})

test('a retry beside a service that runs, killed and repeated, ends in the read model, and poison is not multiplied', async () => {
  const writer = await openJournalWriter(journal)
  await writer.append([noEvent])
  await writer.close()
  const pledges = Array.from({ length: 3_000 }, (_, n) =>
    pledgeEvent({ campaign_id: 'c', pledge_id: `p${n}` }),
  )
  const events = [campaignEvent({ campaign_id: 'c' }), ...pledges]
  const byHand = await openJournalReader(journal, { consumer: 'by hand' })
  await byHand.reject(
    events.map((event, offset) => {
      const record = { ...newRecordOf(event), partition: 0, offset: offset + 100_000, appendedAt: 0 }
      return { record, reason: 'schema id 2 is unknown for a pledge' }
    }),
  )
  await byHand.close()
  const counts = { public_campaigns: 1, known_pledges: 3_000, rejects: 3_002 }
  await vi.waitFor(async () => expect((await status()).rejects).toBe(3_002), { timeout: 20_000 })

  const retry = ['rejects', 'retry', '--all-matching', '--json', '--data-dir', directory.path]
  const { child, started } = launchProcess(retry)
  started.catch(() => {})
  const inspector = openJournalInspector(journal)
  await vi.waitFor(() => expect(inspector.ends().campaigns).toBeGreaterThan(1), {
    timeout: 20_000,
    interval: 1,
  })
  inspector.close()
  child.kill('SIGKILL')
  const { code, stdout, stderr } = await runCli(retry)
  expect(code, stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ matched: 3_002, retried: 3_001, no_event: 1 })
  await vi.waitFor(async () => expect(await status()).toEqual(counts), { timeout: 20_000, interval: 200 })
})

async function status(): Promise<{ public_campaigns: number; known_pledges: number; rejects: number }> {
  const { stdout, code, stderr } = await runCli(['status', '--json', '--data-dir', directory.path])
  expect(code, stderr).toBe(0)
  const { tables, rejects } = JSON.parse(stdout) as {
    tables: { public_campaigns: number; known_pledges: number }
    rejects: { total: number }
  }
  const { public_campaigns, known_pledges } = tables
  return { public_campaigns, known_pledges, rejects: rejects.total }
}
