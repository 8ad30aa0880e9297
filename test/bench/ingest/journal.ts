/** The journal that every ingest run reads: the real Kickstarter table, or the demo platform if the table is missing. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keyOf } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { eventsAppend } from '../../../services/commands/events/events.ts'
import { openJournalWriter } from '../../../services/log/local/journal.ts'
import { sampleCampaigns } from '../../support/events/sample-campaigns.ts'
import { kickstarterFolder, kickstarterTable } from '../../support/runner/requirements.ts'
import type { Workspace } from '../workspace.ts'

export interface PreparedJournal {
  path: string
  events: number
  /** The source of the events, for the report. */
  source: string
  /** Whether it is the table that the targets are for. */
  isWholeTable: boolean
}

// About as many events as the real table has.
const demoCampaigns = 16_000
const demoNow = Date.UTC(2026, 0, 1)

export async function prepareJournal(workspace: Workspace): Promise<PreparedJournal> {
  const path = join(workspace.directory('journal'), 'journal.sqlite')
  const writer = await openJournalWriter(path)
  const { appended } = await eventsAppend({
    source: kickstarterTable.isMet ? kickstarterLines() : demoLines(),
    writer,
  })
  await writer.close()
  return {
    path,
    events: appended,
    source: kickstarterTable.isMet
      ? 'the real Kickstarter table'
      : `the demo platform of ${demoCampaigns} campaigns (${kickstarterTable.reason})`,
    isWholeTable: kickstarterTable.isMet,
  }
}

async function* kickstarterLines(): AsyncGenerator<Uint8Array> {
  const generator = fileURLToPath(new URL('kickstarter-to-events.mjs', kickstarterFolder))
  const table = fileURLToPath(new URL('kickstarter-2018-sample.csv', kickstarterFolder))
  const child = spawn(process.execPath, [generator, table], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  yield* child.stdout
  const [code] = await exited
  if (code !== 0) throw new Error(`the generator of the Kickstarter events ended with ${code}`)
}

async function* demoLines(): AsyncGenerator<string> {
  for (const event of sampleCampaigns(demoNow, demoCampaigns))
    yield `${formatEvent({ ...event, key: keyOf(event) })}\n`
}
