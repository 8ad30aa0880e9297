/** The circuit breaker of rejects across restarts: what a supervisor's restart loop can move to the dead-letter queue. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDataDirectory } from '../../services/local/data-directory.ts'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import type { EventWriter } from '../../services/log/port.ts'
import type { Status } from '../../services/projector/status.ts'
import { makeDataDirectory, startServiceProcess } from '../support/deployment/service-process.ts'
import { campaignEvent, newRecordOf, noEvent } from '../support/events/sample-events.ts'

const directory = makeDataDirectory()
const { journal } = openDataDirectory(directory.path)
const rejectsMin = 20
// A run alone stays below the limit with them.
const bad = Array.from({ length: 15 }, () => noEvent)
let writer: EventWriter

beforeAll(async () => {
  writer = await openJournalWriter(journal)
})
afterAll(async () => {
  await writer.close()
  directory.remove()
})

test('a burst of kills and restarts moves no more to the dead-letter queue than one run, and an operator can go on', async () => {
  for (let round = 1; round <= 3; round++) {
    await writer.append(bad)
    expect(await run(), `round ${round}`).toEqual({ isStopped: round > 1, rejects: bad.length })
  }
  // The documented way on: one run that lets them pass.
  expect(await run({ PLEDGEVIEW_REJECT_SHARE_MAX: '1' })).toEqual({
    isStopped: false,
    rejects: 3 * bad.length,
  })
  // Later runs do not count them.
  await writer.append([...bad, newRecordOf(campaignEvent({ campaign_id: 'good' }))])
  expect(await run()).toEqual({ isStopped: false, rejects: 4 * bad.length })
}, 300_000)

/** Starts the service, waits until its projector has read everything or has stopped, and kills it. */
async function run(
  settings: Record<string, string> = {},
): Promise<{ isStopped: boolean; rejects: number | undefined }> {
  const service = await startServiceProcess(['--no-demo', '--no-sql', '--data-dir', directory.path], {
    PLEDGEVIEW_LOG_LEVEL: 'warn',
    PLEDGEVIEW_REJECTS_MIN: String(rejectsMin),
    ...settings,
  })
  try {
    return await vi.waitUntil(
      async () => {
        const status = (await (await fetch(`${service.opsUrl}/status`)).json()) as Status
        const isStopped = status.projector.state === 'stopped'
        const isRead = status.projector.lag.every(({ committed, end }) => committed >= end)
        return (isStopped || isRead) && { isStopped, rejects: status.rejects?.total }
      },
      { timeout: 60_000, interval: 50 },
    )
  } finally {
    await service.stop('SIGKILL')
  }
}
