/** Reads into the shadow tables and folds them. */

import { createFoldWorker, type FoldWorker, type FoldWorkerSettings } from '../projector/fold/fold-worker.ts'
import { untilNoFoldRuns } from '../projector/fold/running-folds.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import { createDecoder } from '../projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../projector/ingest/reject-circuit-breaker.ts'
import type { MisplacedRecords } from '../projector/misplaced-records.ts'
import type { ProjectorSettings } from '../projector/projector.ts'
import type { Config } from '../shared/config.ts'
import type { EventReader, PartitionLag, Position } from '../shared/event-log/port.ts'
import type { SchemaRegistry } from '../shared/schema-registry/schema-registry.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { ingestTo } from './ingest.ts'
import { shadowOf } from './shadow-tables.ts'
import { highestEpoch } from './swap.ts'

export interface ShadowProjectorDependencies {
  tables: Tables
  databases: Databases
  config: Config
  projectorSettings: ProjectorSettings
  foldWorkerSettings: FoldWorkerSettings
  hashBacker: HashBacker
  schemaRegistry?: SchemaRegistry | undefined
  /** Names this run; unique. */
  run: string
  /** Unix ms. */
  now: () => number
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
  onRetry: (error: Error) => void
  onRecords: (counts: { records: number; rejects: number; misplaced: MisplacedRecords }) => void
}

export interface ShadowProjector {
  foldWorker: FoldWorker
  /** Reads up to these positions into the ledger of the shadow tables or of the live tables. */
  ingest(source: IngestSource, signal: AbortSignal): Promise<void>
  /** The campaigns that had events since the last call. The first call begins the collection. */
  takeTouched(): ReadonlySet<string>
}

export interface IngestSource {
  reader: EventReader
  target: readonly Position[]
  into: 'shadow' | 'live'
  onLag: (lag: readonly PartitionLag[]) => void
}

// Nothing reads the shadow tables, so their statements may take long.
const foldMsMax = 30 * 60_000

export function createShadowProjector(dependencies: ShadowProjectorDependencies): ShadowProjector {
  const { tables, databases, config, foldWorkerSettings, run, now, monotonicMs, sleep, random } = dependencies
  const shadow = shadowOf(databases)
  const { schemaRegistry, onRetry } = dependencies
  const decode = createDecoder(schemaRegistry?.known)
  let stretches = 0
  let touched: Set<string> | undefined

  const foldWorker = createFoldWorker({
    tables,
    databases: shadow,
    holder: run,
    settings: { ...foldWorkerSettings, horizonMs: 2 * foldMsMax },
    settle: () => untilNoFoldRuns(tables, shadow, { msMax: foldMsMax, monotonicMs, sleep }),
    epochFloor: () => highestEpoch(tables, databases),
    liveModel: databases.model,
    monotonicMs,
    sleep,
    random,
  })

  return {
    foldWorker,

    ingest({ reader, target, into, onLag }, signal) {
      stretches++
      return ingestTo(
        {
          reader,
          tables,
          databases: into === 'live' ? databases : shadow,
          decode,
          schemaRegistry,
          hashBacker: dependencies.hashBacker,
          circuitBreaker: createRejectCircuitBreaker({
            shareMax: config.PLEDGEVIEW_REJECT_SHARE_MAX,
            windowRecords: config.PLEDGEVIEW_REJECT_WINDOW_RECORDS,
            rejectsMin: config.PLEDGEVIEW_REJECTS_MIN,
          }),
          // Each call counts its batches from 1, so it needs its own name in the batch log.
          projector: `${run}-${stretches}`,
          settings: dependencies.projectorSettings,
          onBatch({ records, rejects, misplaced, campaignIds }) {
            dependencies.onRecords({ records, rejects: rejects.length, misplaced })
            if (touched) for (const id of campaignIds) touched.add(id)
          },
          onRetry,
          onLag,
          now,
          monotonicMs,
          sleep,
          random,
        },
        target,
        signal,
      )
    },

    takeTouched() {
      const taken = touched ?? new Set<string>()
      touched = new Set()
      return taken
    },
  }
}
