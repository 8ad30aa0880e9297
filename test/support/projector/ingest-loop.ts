/** The ingest loop for tests: with limits that make it quick, on any log and any tables. */

import type { EventReader } from '../../../services/log/port.ts'
import type { Batch } from '../../../services/projector/ingest/batch.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'
import {
  createRejectCircuitBreaker,
  type RejectCircuitBreakerSettings,
} from '../../../services/projector/ingest/reject-circuit-breaker.ts'
import { type ProjectorSettings, runProjector } from '../../../services/projector/projector.ts'
import { type Sleep, sleep } from '../../../services/runtime/sleep.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { createRejectStore } from '../../../services/tables/rejects.ts'
import { hashBacker } from './model-tables.ts'

export interface IngestSetup {
  reader: EventReader
  tables: Tables
  databases: Databases
  settings?: Partial<ProjectorSettings>
  circuitBreaker?: Partial<RejectCircuitBreakerSettings>
  clock?: { monotonicMs: () => number; sleep: Sleep }
  /** Unix ms. The events of tests are as old as the epoch, so by default their log is never a backlog. */
  now?: () => number
}

export interface RunningIngest {
  done: Promise<void>
  /** Aborts the loop, and resolves or rejects with it. */
  stop(): Promise<void>
  batches: Batch[]
  retries: Error[]
}

/** Starts the loop. Its backoff is cut short, unless the test brings its own clock. */
export function startIngest({
  reader,
  tables,
  databases,
  settings,
  circuitBreaker,
  clock,
  now = () => 0,
}: IngestSetup): RunningIngest {
  const abort = new AbortController()
  const batches: Batch[] = []
  const retries: Error[] = []
  const done = runProjector(
    {
      reader,
      tables,
      databases,
      storeRejects: createRejectStore({ tables, databases, keptMs: 86_400_000, now: Date.now }),
      decode: createDecoder(),
      hashBacker,
      circuitBreaker: createRejectCircuitBreaker({
        shareMax: 0.1,
        windowRecords: 1_000,
        rejectsMin: 100,
        ...circuitBreaker,
      }),
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
      now,
      sleep: clock?.sleep ?? ((ms, signal) => sleep(Math.min(ms, 5), signal)),
      random: () => 0,
    },
    abort.signal,
  )
  // The test awaits it later. Until then a failure must not count as an unhandled rejection.
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
