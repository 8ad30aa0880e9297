/** The ingest loop for tests: with limits that make it quick, on any log and any tables. */
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { EventReader, NewRecord } from '../../../services/log/port.ts'
import type { Batch } from '../../../services/projector/ingest/batch.ts'
import { createDecoder, type Decode } from '../../../services/projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../../../services/projector/ingest/reject-circuit-breaker.ts'
import { runProjector } from '../../../services/projector/projector.ts'
import type { ProjectorSettings } from '../../../services/projector/settings.ts'
import { type Sleep, sleep } from '../../../services/runtime/async/sleep.ts'
import { type Config, readConfig } from '../../../services/runtime/config.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { createRejectStore } from '../../../services/tables/rejects.ts'
import { newRecordOf, smallWorld } from '../events/sample-events.ts'
import { unkept } from '../events/starts.ts'
import { createTestFoldWorker, hashBacker, readViews } from './model-tables.ts'
import { useFreshModel } from './use-model-tables.ts'

export interface IngestSetup {
  reader: EventReader
  tables: Tables
  databases?: Databases
  /** Whether rejects are written to the tables. Default: yes. */
  storesRejects?: boolean
  decode?: Decode
  positions?: Dependencies['positions']
  settings?: Partial<ProjectorSettings>
  circuitBreaker?: Partial<Config>
  clock?: { monotonicMs: () => number; sleep: Sleep }
  events?: Partial<Dependencies['events']>
  /** Unix ms. The events of tests are as old as the epoch, so by default their log is never a backlog. */
  now?: () => number
}

type Dependencies = Parameters<typeof runProjector>[0]

/** What the loop needs. Its backoff is cut short, unless the test brings its own clock. */
export function ingestDependencies({
  reader,
  tables,
  databases = defaultDatabases,
  storesRejects = true,
  decode = createDecoder(),
  positions = unkept(databases),
  settings,
  circuitBreaker,
  clock,
  events,
  now = () => 0,
}: IngestSetup) {
  return {
    ...{ reader, tables, decode, positions, hashBacker, now, projector: 'test' },
    ...(storesRejects && {
      storeRejects: createRejectStore({ tables, databases, keptMs: 86_400_000, now: Date.now }),
    }),
    circuitBreaker: createRejectCircuitBreaker({
      ...readConfig({ PLEDGEVIEW_REJECT_WINDOW_RECORDS: '1000' }),
      ...circuitBreaker,
    }),
    settings: {
      ...{ batchRecordsMax: 1_000, batchBytesMax: 1_000_000, idleMsMax: 20, retryMsMax: 60_000 },
      ...{ batchMsMax: 20, batchMsMin: settings?.batchMsMax ?? 20, ...settings },
    },
    events: { onBatch: () => {}, onRetry: () => {}, onTurn: () => {}, ...events },
    monotonicMs: clock?.monotonicMs ?? (() => performance.now()),
    sleep: clock?.sleep ?? ((ms, signal) => sleep(Math.min(ms, 5), signal)),
    random: () => 0,
  } satisfies Dependencies
}

/** Tables that only take inserts. */
export function insertsOnly(insert: Tables['insert']): Tables {
  const never = () => {
    throw new Error('the loop asks the tables for nothing')
  }
  return { insert, rows: never, run: never, close: never }
}

/** Starts the loop. */
export function startIngest({ events, ...setup }: IngestSetup) {
  const abort = new AbortController()
  const batches: Batch[] = []
  const retries: Error[] = []
  const noted = {
    onBatch: (batch: Batch) => void batches.push(batch),
    onRetry: (error: Error) => void retries.push(error),
  }
  const done = runProjector(ingestDependencies({ ...setup, events: { ...noted, ...events } }), abort.signal)
  // The test awaits it later. Until then a failure must not count as an unhandled rejection.
  done.catch(() => {})
  return {
    done,
    batches,
    retries,
    /** Aborts the loop, and resolves or rejects with it. */
    async stop(): Promise<void> {
      abort.abort()
      await done
    },
  }
}

export const world = smallWorld()
export const worldEnds = { 'campaigns/0': 2, 'pledges/0': 2, 'api-keys/0': 1 }
// Only a hang takes this long, also while a slow disk holds up every insert.
export const soon = { timeout: 60_000 }

export function recordsOf(events: readonly ChangeEvent[]): NewRecord[] {
  return events.map(newRecordOf)
}

/** The loop on fresh tables for each test. */
export function useIngest() {
  const model = useFreshModel()
  return {
    model,
    start: (setup: Omit<IngestSetup, 'databases'>) => startIngest({ ...setup, databases: model.databases }),
    /** What the views say once what is in the ledger is folded. */
    async foldedReading(): Promise<unknown> {
      const { foldWorker } = createTestFoldWorker(model.tables, model.databases)
      await foldWorker.acquireLeadership()
      await foldWorker.fold()
      return readViews(model.tables, model.databases)
    },
  }
}
