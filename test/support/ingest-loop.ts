/** The ingest loop as a test runs it: with bounds that make it quick, over any log and any tables. */
import type { Batch } from '../../services/projector/batch.ts'
import { createDecoder } from '../../services/projector/decode.ts'
import { backerHasher } from '../../services/projector/ledger-rows.ts'
import { type ProjectorSettings, runProjector } from '../../services/projector/projector.ts'
import { createRejectGate, type RejectGateSettings } from '../../services/projector/reject-gate.ts'
import { type Sleep, sleep } from '../../services/projector/sleep.ts'
import type { EventReader } from '../../services/shared/event-log/port.ts'
import type { Databases, Tables } from '../../services/shared/tables/port.ts'
import { backerKey } from './model-tables.ts'

export interface IngestSetup {
  reader: EventReader
  tables: Tables
  databases: Databases
  settings?: Partial<ProjectorSettings>
  gate?: Partial<RejectGateSettings>
  clock?: { monotonicMs: () => number; sleep: Sleep }
}

export interface RunningIngest {
  done: Promise<void>
  /** Aborts the loop and resolves, or rejects, with it. */
  stop(): Promise<void>
  batches: Batch[]
  retries: Error[]
}

/** Starts the loop. Its waits between tries are cut short, unless the test brings a clock of its own. */
export function startIngest({
  reader,
  tables,
  databases,
  settings,
  gate,
  clock,
}: IngestSetup): RunningIngest {
  const abort = new AbortController()
  const batches: Batch[] = []
  const retries: Error[] = []
  const done = runProjector(
    {
      reader,
      tables,
      databases,
      decode: createDecoder(),
      hashBacker: backerHasher(backerKey),
      gate: createRejectGate({ shareMax: 0.1, windowRecords: 1_000, rejectsMin: 100, ...gate }),
      projector: 'test',
      settings: {
        batchRecordsMax: 1_000,
        batchBytesMax: 1_000_000,
        batchMsMax: 20,
        idleMsMax: 20,
        retryMsMax: 60_000,
        ...settings,
      },
      events: {
        onBatch: batch => batches.push(batch),
        onRetry: error => retries.push(error),
        onTurn: () => {},
      },
      monotonicMs: clock?.monotonicMs ?? (() => performance.now()),
      sleep: clock?.sleep ?? ((ms, signal) => sleep(Math.min(ms, 5), signal)),
      random: () => 0,
    },
    abort.signal,
  )
  // A test awaits it in its own time; until then a failure must not count as unhandled.
  done.catch(() => {})
  return {
    done,
    batches,
    retries,
    async stop() {
      abort.abort()
      await done
    },
  }
}
