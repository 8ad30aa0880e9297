/** What the parts of a rebuild share. */

import type { Logger } from 'pino'
import type { History } from '../log/port.ts'
import type { SchemaRegistry } from '../log/registry/schema-registry.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import type { Positions } from '../projector/positions.ts'
import type { Config } from '../runtime/config.ts'
import type { Sleep } from '../runtime/sleep.ts'
import type { Tables } from '../tables/port.ts'
import type { ShadowProjector } from './build/shadow-projector.ts'
import type { RebuildTables } from './cluster.ts'
import type { RebuildPart } from './parts.ts'
import type { RebuildState, WorkPhase } from './rebuild-log.ts'
import type { RebuildTracker } from './tracker.ts'

export interface RebuildDependencies extends RebuildTables {
  history: History
  config: Config
  hashBacker: HashBacker
  schemaRegistry?: SchemaRegistry | undefined
  /** Names this run; unique. */
  run: string
  /** Whether no other process can work on these tables. */
  isAlone: boolean
  /** If more rows than this have changed, they are stamped after the swap, in a second fold pause. Default: 10,000. */
  stampedDuringPauseMax?: number
  logger: Logger
  onProgress: (state: RebuildState) => void
  /** Unix ms. */
  now: () => number
  monotonicMs: () => number
  random: () => number
}

/** A running rebuild. Its `tables` retry statements, and use half of ClickHouse's cores. */
export interface RebuildContext extends RebuildDependencies {
  tables: Tables
  /** What is swapped in one statement each: on one server all tables, on a cluster those of each shard. */
  parts: readonly RebuildPart[]
  tracker: RebuildTracker
  positions: Positions
  shadowProjector: ShadowProjector
  sleep: Sleep
  signal: AbortSignal
}

/** Begins a phase. Throws if the rebuild was stopped or given up. */
export async function enter({ tracker, signal }: RebuildContext, phase: WorkPhase): Promise<void> {
  signal.throwIfAborted()
  await tracker.enter(phase)
}

/**
 * Begins a phase before the swap. Once a shard is swapped, the rebuild stays in the phase `swapping`, whatever it does again for the
 * other shards: it must not be given up any more.
 */
export async function enterBeforeSwap(context: RebuildContext, phase: WorkPhase): Promise<void> {
  if (openParts(context).length === context.parts.length) await enter(context, phase)
  else context.signal.throwIfAborted()
}

/** The parts that are not swapped yet. */
export function openParts({ parts }: Pick<RebuildContext, 'parts'>): RebuildPart[] {
  return parts.filter(({ isSwapped }) => !isSwapped)
}
