/** The generation that is built beside the live one: reading into it, and folding it. */
import { createDecoder } from '../projector/decode.ts'
import { createFolder, type Folder, type FolderSettings } from '../projector/folder.ts'
import { backerHasher } from '../projector/ledger-rows.ts'
import type { ProjectorSettings } from '../projector/projector.ts'
import { createRejectGate } from '../projector/reject-gate.ts'
import type { Sleep } from '../projector/sleep.ts'
import type { Config } from '../shared/config.ts'
import type { EventReader, PartitionLag, Position } from '../shared/event-log/port.ts'
import type { SchemaRegistry } from '../shared/schema-registry.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { highestEpoch } from './exchange.ts'
import { shadowOf, untilNoFoldRuns } from './generation.ts'
import { ingestTo } from './ingest.ts'

export interface ShadowModelDependencies {
  tables: Tables
  databases: Databases
  config: Config
  projectorSettings: ProjectorSettings
  folderSettings: FolderSettings
  backerKey: string
  schemaRegistry?: SchemaRegistry | undefined
  /** Names this run; unique. */
  run: string
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
  onRetry: (error: Error) => void
  onRecords: (counts: { records: number; rejects: number }) => void
}

export interface ShadowModel {
  folder: Folder
  /** Reads up to these positions into the ledger of the shadow or of the live generation. */
  ingest(source: IngestSource, signal: AbortSignal): Promise<void>
  /** The campaigns that were read of since this was called the last time. */
  takeTouched(): ReadonlySet<string>
}

export interface IngestSource {
  reader: EventReader
  target: readonly Position[]
  into: 'shadow' | 'live'
  onLag: (lag: readonly PartitionLag[]) => void
}

// A statement into tables that nobody reads may take its time.
const foldMsMax = 30 * 60_000

export function createShadowModel(dependencies: ShadowModelDependencies): ShadowModel {
  const { tables, databases, config, folderSettings, run, monotonicMs, sleep, random } = dependencies
  const shadow = shadowOf(databases)
  const { schemaRegistry, onRetry } = dependencies
  const decode = createDecoder(schemaRegistry?.known)
  const hashBacker = backerHasher(dependencies.backerKey)
  let stretches = 0
  let touched = new Set<string>()

  const folder = createFolder({
    tables,
    databases: shadow,
    holder: run,
    settings: { ...folderSettings, horizonMs: 2 * foldMsMax },
    settle: () => untilNoFoldRuns(tables, shadow, { msMax: foldMsMax, sleep }),
    epochFloor: () => highestEpoch(tables, databases),
    besides: databases.model,
    monotonicMs,
    sleep,
    random,
  })

  return {
    folder,

    ingest({ reader, target, into, onLag }, signal) {
      stretches++
      return ingestTo(
        {
          reader,
          tables,
          databases: into === 'live' ? databases : shadow,
          decode,
          schemaRegistry,
          hashBacker,
          gate: createRejectGate({
            shareMax: config.PLEDGEVIEW_REJECT_SHARE_MAX,
            windowRecords: config.PLEDGEVIEW_REJECT_WINDOW_RECORDS,
            rejectsMin: config.PLEDGEVIEW_REJECTS_MIN,
          }),
          // Its batches are counted from 1 in every stretch.
          projector: `${run}-${stretches}`,
          settings: dependencies.projectorSettings,
          onBatch({ records, rejects, campaignIds }) {
            dependencies.onRecords({ records, rejects: rejects.length })
            for (const id of campaignIds) touched.add(id)
          },
          onRetry,
          onLag,
          monotonicMs,
          sleep,
          random,
        },
        target,
        signal,
      )
    },

    takeTouched() {
      const taken = touched
      touched = new Set()
      return taken
    },
  }
}
