/**
 * Fills the rebuild bench's data directory, once for all of its processes, which have it one after the other: a journal
 * with the whole history, and the live model of it.
 *
 * The live ledger is read from the journal by the projector's own loop, and folded once when all is in: the same rows as
 * a projector's that followed the journal all along, in less time.
 */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { encodeState } from '../../contracts/events/codec.ts'
import { keyOf, topicOf } from '../../contracts/events/event.ts'
import { openDataDirectory, readSecrets } from '../../services/embedded/data-directory.ts'
import { liveConsumer } from '../../services/embedded/model.ts'
import { projectorSettings } from '../../services/projector/service.ts'
import { sleep } from '../../services/projector/sleep.ts'
import { endsOf } from '../../services/rebuild/ingest.ts'
import { createShadowModel } from '../../services/rebuild/shadow-model.ts'
import { folderSettings } from '../../services/rebuild/work.ts'
import { readConfig } from '../../services/shared/config.ts'
import { openJournalReader, openJournalWriter } from '../../services/shared/event-log/journal/journal.ts'
import type { NewRecord } from '../../services/shared/event-log/port.ts'
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { migrate } from '../../services/shared/tables/migrate.ts'
import { defaultDatabases, type Tables } from '../../services/shared/tables/port.ts'
import { benchInput, serveBench } from './bench-process.ts'
import type { PlatformSize } from './platform.ts'
import { mergesEnded, openPlatformFolder, secondsOf } from './platform-fold.ts'
import { historyEvents } from './rebuild-history.ts'

export interface RebuildFillInput extends PlatformSize {
  directory: string
}

export interface RebuildFilled {
  appendSeconds: number
  ledgerSeconds: number
  foldSeconds: number
  journalBytes: number
}

const recordsPerAppend = 20_000

const { directory, ...size } = benchInput<RebuildFillInput>()
const files = openDataDirectory(directory)
const appendSeconds = await secondsOf(appendHistory)
const tables = openChdbTables(files.tables)
await migrate(tables, defaultDatabases)
const ledgerSeconds = await secondsOf(() => fillLedger(tables))
const foldSeconds = await secondsOf(() => foldWhole(tables))
await mergesEnded(tables)
const ready: RebuildFilled = {
  appendSeconds,
  ledgerSeconds,
  foldSeconds,
  journalBytes: statSync(files.journal).size,
}
serveBench({ ready, close: () => tables.close() })

async function appendHistory(): Promise<void> {
  const writer = await openJournalWriter(files.journal)
  let records: NewRecord[] = []
  for (const event of historyEvents(size)) {
    records.push({ topic: topicOf[event.type], key: Buffer.from(keyOf(event)), value: encodeState(event) })
    if (records.length < recordsPerAppend) continue
    await writer.append(records)
    records = []
  }
  await writer.append(records)
  await writer.close()
}

async function fillLedger(tables: Tables): Promise<void> {
  const config = readConfig({})
  const reader = await openJournalReader(files.journal, { consumer: liveConsumer })
  const model = createShadowModel({
    tables,
    databases: defaultDatabases,
    config,
    projectorSettings: projectorSettings(config),
    folderSettings: folderSettings(config),
    backerKey: readSecrets(files, { keyPepper: undefined, backerKey: undefined }, randomBytes).backerKey,
    run: 'fill',
    monotonicMs: () => performance.now(),
    sleep,
    random: Math.random,
    onRetry: fail,
    onRecords: ({ rejects }) => {
      if (rejects > 0) throw new Error(`${rejects} records were rejected`)
    },
  })
  const target = await endsOf(reader)
  await model.ingest({ reader, target, into: 'live', onLag: () => {} }, new AbortController().signal)
  await reader.close()
}

async function foldWhole(tables: Tables): Promise<void> {
  const folder = openPlatformFolder(tables, defaultDatabases)
  await folder.takeOver()
  await folder.foldAll()
}

function fail(error: Error): never {
  throw error
}
