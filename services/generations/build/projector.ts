/**
 * Builds a generation: the projector's own loop on another set of databases. It reads all partitions by itself, as a consumer of its own, so
 * it takes nothing from the projectors and says nothing about how far they are.
 */
import { isChangeTopic } from '../../../contracts/events/event.ts'
import {
  type EventReader,
  type History,
  type LogState,
  type PartitionLag,
  type Position,
  partitionName,
} from '../../log/port.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { createRejectCircuitBreaker } from '../../projector/ingest/reject-circuit-breaker.ts'
import type { MisplacedRecords } from '../../projector/misplaced-records.ts'
import {
  createPositions,
  type Positions,
  readPositions,
  type StoredPosition,
  writePositions,
} from '../../projector/positions.ts'
import { projectorSettings, rejectStoreOf } from '../../projector/service.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import type { Databases } from '../../tables/port.ts'
import type { RebuildContext, RebuildDependencies } from '../context.ts'
import type { RebuildPart } from '../parts.ts'
import { ingestTo } from './ingest.ts'

export interface BuilderDependencies extends RebuildDependencies {
  /** Over all shards. */
  rebuilt: Databases
  positions: Positions
  sleep: Sleep
  onRetry: (error: Error) => void
  onRecords: (counts: { records: number; rejects: number; misplaced: MisplacedRecords }) => void
  onCampaigns: (campaignIds: Iterable<string>) => void
}

export interface Builder {
  /** Reads up to these positions into the ledger of the new generation. */
  ingest(source: IngestSource, signal: AbortSignal): Promise<void>
}

export interface IngestSource {
  reader: EventReader
  target: readonly Position[]
  /** A dry run stores none. */
  storesRejects: boolean
  onLag: (lag: readonly PartitionLag[]) => void
}

export function createBuilder(dependencies: BuilderDependencies): Builder {
  const { tables, rebuilt, positions, config, run, now, schemaRegistry } = dependencies
  const decode = createDecoder(schemaRegistry?.known)
  let stretches = 0

  return {
    ingest({ reader, target, storesRejects, onLag }, signal) {
      stretches++
      return ingestTo(
        {
          ...dependencies,
          reader,
          databases: rebuilt,
          positions,
          // The table belongs to no generation, and has the rejects that the projectors have stored already.
          ...(storesRejects && { storeRejects: rejectStoreOf(tables, rebuilt, config, now) }),
          decode,
          circuitBreaker: createRejectCircuitBreaker({
            shareMax: config.PLEDGEVIEW_REJECT_SHARE_MAX,
            windowRecords: config.PLEDGEVIEW_REJECT_WINDOW_RECORDS,
            rejectsMin: config.PLEDGEVIEW_REJECTS_MIN,
          }),
          // Each call counts its batches from 1, so it needs its own name in the batch log.
          projector: `${run}-${stretches}`,
          settings: projectorSettings(config),
          onBatch({ records, rejects, misplaced, campaignIds }) {
            dependencies.onRecords({ records, rejects: rejects.length, misplaced })
            dependencies.onCampaigns(campaignIds)
          },
          onLag,
        },
        target,
        signal,
      )
    },
  }
}

/** A new generation is read from the start of the log, or from the time in the request. */
export function createBuildPositions({
  tables,
  rebuilt,
  parts,
  history,
  fromTime,
  now,
  warn,
}: Pick<BuilderDependencies, 'tables' | 'rebuilt' | 'now'> & {
  parts: readonly RebuildPart[]
  history: Pick<History, 'positionsAt'>
  fromTime: number | null
  warn: (message: string) => void
}): Positions {
  const shards = parts.map(part => ({ tables: part.tables, databases: part.rebuilt }))
  const positions = createPositions({ tables, databases: rebuilt, shards, now, warn })
  return {
    ...positions,
    async find(state) {
      const { ofLog } = await readPositions(shards, state.log)
      if (ofLog.size === 0) await writePositions(shards, await firstPositions(state))
      return positions.find(state)
    },
  }

  async function firstPositions({ log, partitions }: LogState): Promise<StoredPosition[]> {
    const none = { log, era: 0, lastAt: 0, againUntil: 0, lostWatermark: 0 }
    const starts = partitions.map(({ topic, partition, low }) => ({
      ...{ ...none, topic, partition, next: low, readUntil: now() },
    }))
    if (fromTime === null) return starts
    const later = new Map(
      (await history.positionsAt(fromTime)).map(at => [partitionName(at), at.next] as const),
    )
    // What was deleted before that time is known to the current generation only. The portal's topics are always read whole.
    return starts.map(row =>
      isChangeTopic(row.topic)
        ? { ...row, next: later.get(partitionName(row)) ?? row.next, readUntil: 0 }
        : row,
    )
  }
}

/** The new generation knows every deletion that the current one knows, so it is read as far in time. */
export async function carryReadUntil({ parts }: Pick<RebuildContext, 'parts'>, log: string): Promise<void> {
  for (const { tables, live, rebuilt } of parts) {
    const [before, after] = await Promise.all(
      [live, rebuilt].map(databases => readPositions([{ tables, databases }], log)),
    )
    const rows = [...(after?.ofLog ?? [])].flatMap(([name, row]) => {
      const was = before?.ofLog.get(name)
      if (!was) return []
      const readUntil = Math.max(was.readUntil, row.readUntil)
      return [{ ...row, readUntil, lostWatermark: Math.max(was.lostWatermark, row.lostWatermark) }]
    })
    await writePositions([{ tables, databases: rebuilt }], rows)
  }
}
