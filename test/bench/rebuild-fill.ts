/**
 * Fills the rebuild bench's data directory once, with a journal of the whole history and its live model. The bench's processes
 * then open it one after the other.
 *
 * The projector's own loop reads the journal into the live ledger. The ledger is folded once, after all records are in: the
 * rows are the same as those of a projector that followed the journal, in less time.
 */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { encodeState } from '../../contracts/events/codec.ts'
import { keyOf, topicOf } from '../../contracts/events/event.ts'
import { ingestTo } from '../../services/generations/build/ingest.ts'
import { openDataDirectory, readSecrets } from '../../services/local/data-directory.ts'
import { liveConsumer } from '../../services/local/model.ts'
import { openJournalReader, openJournalWriter } from '../../services/log/local/journal.ts'
import type { NewRecord } from '../../services/log/port.ts'
import { backerHasher } from '../../services/projector/ingest/backer-hash.ts'
import { createDecoder } from '../../services/projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../../services/projector/ingest/reject-circuit-breaker.ts'
import { createPositions } from '../../services/projector/positions.ts'
import { projectorSettings } from '../../services/projector/service.ts'
import { readConfig } from '../../services/runtime/config.ts'
import { sleep } from '../../services/runtime/sleep.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { heldBackerHash } from '../../services/tables/identity.ts'
import { migrate } from '../../services/tables/migrate.ts'
import type { Tables } from '../../services/tables/port.ts'
import { openOwnTables } from '../support/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'
import type { PlatformSize } from './platform.ts'
import { mergesEnded, openPlatformFoldWorker, secondsOf } from './platform-fold.ts'
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
// Before there are tables: tables without secrets would look like those of a directory that has lost them.
const secrets = readSecrets(files, { keyPepper: undefined, backerKey: undefined }, randomBytes)
const appendSeconds = await secondsOf(appendHistory)
const { tables, close } = await openOwnTables({ directory })
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
serveBench({ ready, close })

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
  const place = { tables, databases: defaultDatabases }
  const positions = createPositions({ ...place, shards: [place], now: Date.now, warn: console.error })
  const reader = await openJournalReader(files.journal, { consumer: liveConsumer, starts: positions })
  const target = (await reader.lag()).map(({ topic, partition, end }) => ({ topic, partition, next: end }))
  await ingestTo(
    {
      ...place,
      reader,
      positions,
      decode: createDecoder(),
      // Held before there are pledges: tables with pledges and without a held hash count as those of an earlier version.
      hashBacker: backerHasher(secrets.backerKey, await heldBackerHash(tables, defaultDatabases)),
      circuitBreaker: createRejectCircuitBreaker({ shareMax: 0, windowRecords: 1, rejectsMin: 1 }),
      projector: 'fill',
      settings: projectorSettings(config),
      now: Date.now,
      monotonicMs: () => performance.now(),
      sleep,
      random: Math.random,
      events: { onBatch: () => {}, onRetry: fail, onTurn: () => {} },
      onLag: () => {},
    },
    target,
    new AbortController().signal,
  )
  await reader.close()
}

async function foldWhole(tables: Tables): Promise<void> {
  const foldWorker = openPlatformFoldWorker(tables, defaultDatabases)
  await foldWorker.acquireLeadership()
  await foldWorker.foldAll()
}

function fail(error: Error): never {
  throw error
}
