/** Reads the log into the shadow tables. */

import type { EventReader, PartitionLag, Position } from '../../log/port.ts'
import type { SchemaRegistry } from '../../log/registry/schema-registry.ts'
import type { HashBacker } from '../../projector/ingest/backer-hash.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../../projector/ingest/reject-circuit-breaker.ts'
import type { MisplacedRecords } from '../../projector/misplaced-records.ts'
import type { Positions } from '../../projector/positions.ts'
import type { ProjectorSettings } from '../../projector/projector.ts'
import { rejectStoreOf } from '../../projector/service.ts'
import type { Config } from '../../runtime/config.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import type { Tables } from '../../tables/port.ts'
import { onEach, type RebuildTables } from '../cluster.ts'
import { ingestTo } from './ingest.ts'
import { shadowOf } from './shadow-tables.ts'

export interface ShadowProjectorDependencies extends RebuildTables {
  positions: Positions
  config: Config
  projectorSettings: ProjectorSettings
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
  onCampaigns: (campaignIds: Iterable<string>) => void
}

export interface ShadowProjector {
  /** Reads up to these positions into the shadow ledger. */
  ingest(source: IngestSource, signal: AbortSignal): Promise<void>
}

export interface IngestSource {
  reader: EventReader
  target: readonly Position[]
  /** A dry run stores none. */
  storesRejects: boolean
  onLag: (lag: readonly PartitionLag[]) => void
}

export function createShadowProjector(dependencies: ShadowProjectorDependencies): ShadowProjector {
  const { tables, databases, positions, config, run, now, monotonicMs, sleep, random } = dependencies
  const { schemaRegistry, onRetry } = dependencies
  const decode = createDecoder(schemaRegistry?.known)
  let stretches = 0

  return {
    ingest({ reader, target, storesRejects, onLag }, signal) {
      stretches++
      return ingestTo(
        {
          reader,
          tables: { ...tables, insert: insertIntoShadow(dependencies) },
          databases: shadowOf(databases),
          positions,
          // The table belongs to no generation, and has the rejects that the projectors have stored already.
          ...(storesRejects && { storeRejects: rejectStoreOf(tables, databases, config, now) }),
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
            dependencies.onCampaigns(campaignIds)
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
  }
}

/** On a cluster each shard's shadow tables have a batch log of their own, with all batches. */
function insertIntoShadow({ tables, databases, cluster }: RebuildTables): Tables['insert'] {
  const shadow = shadowOf(databases).model
  return async (insert, options) => {
    const name = insert.table.slice(shadow.length + 1)
    if (!insert.table.startsWith(`${shadow}.`)) throw new Error(`${insert.table} is no shadow table`)
    // A rebuild makes what readers see. The portal's ledgers are not a part of it: the projectors keep them, with their deletions.
    if (name === 'account_ledger' || name === 'notice_ledger') return
    if (!cluster || name !== 'batch_log') return tables.insert(insert, options)
    await onEach(cluster.shards, shard =>
      shard.tables.insert({ ...insert, table: `${shadowOf(shard.databases).model}.${name}` }, options),
    )
  }
}
