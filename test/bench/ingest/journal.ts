/** The journal that every ingest run reads: the real Kickstarter table, or the demo platform if the table is missing. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { keyOf, type StateEvent } from '../../../contracts/events/event.ts'
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
  appendSeconds: number
}

// About as many events as the real table has.
const demoCampaigns = 16_000
const demoNow = Date.UTC(2026, 0, 1)
const linesPerWrite = 1_000

/** Writes the events as NDJSON first, so that the timing covers `events append` and not the generator. */
export async function prepareJournal(workspace: Workspace): Promise<PreparedJournal> {
  const directory = workspace.directory('journal')
  const events = join(directory, 'events.ndjson')
  if (kickstarterTable.isMet) await writeKickstarterEvents(events)
  else await pipeline(Readable.from(demoLines()), createWriteStream(events))

  const path = join(directory, 'journal.sqlite')
  const writer = await openJournalWriter(path)
  const startedMs = performance.now()
  const { appended } = await eventsAppend({
    source: createReadStream(events, { highWaterMark: 256 * 1024 }),
    writer,
  })
  const appendSeconds = (performance.now() - startedMs) / 1000
  await writer.close()
  return {
    path,
    events: appended,
    source: kickstarterTable.isMet
      ? 'the real Kickstarter table'
      : `the demo platform of ${demoCampaigns} campaigns (${kickstarterTable.reason})`,
    isWholeTable: kickstarterTable.isMet,
    appendSeconds,
  }
}

async function writeKickstarterEvents(path: string): Promise<void> {
  const generator = fileURLToPath(new URL('kickstarter-to-events.mjs', kickstarterFolder))
  const table = fileURLToPath(new URL('kickstarter-2018-sample.csv', kickstarterFolder))
  const child = spawn(process.execPath, [generator, table], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [[code]] = await Promise.all([once(child, 'exit'), pipeline(child.stdout, createWriteStream(path))])
  if (code !== 0) throw new Error(`the generator of the Kickstarter events ended with ${code}`)
}

function* demoLines(): Generator<string> {
  let lines: string[] = []
  for (const event of sampleCampaigns(demoNow, demoCampaigns)) {
    lines.push(formatEvent(withKey(event)))
    if (lines.length < linesPerWrite) continue
    yield `${lines.join('\n')}\n`
    lines = []
  }
  if (lines.length > 0) yield `${lines.join('\n')}\n`
}

function withKey(event: StateEvent) {
  return { ...event, key: keyOf(event) }
}
