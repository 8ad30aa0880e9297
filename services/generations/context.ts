/** What the steps of a rebuild share. */
import type { History } from '../log/port.ts'
import type { SchemaRegistry } from '../log/registry/schema-registry.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import type { Positions } from '../projector/positions/positions.ts'
import type { Config } from '../runtime/config.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Databases, Tables } from '../tables/port.ts'
import type { LogPlace } from './attempts.ts'
import type { RebuildTables } from './cluster.ts'
import type { RebuildPart } from './parts.ts'
import type { RebuildState, WorkPhase } from './rebuild-log.ts'
import type { RebuildTracker } from './tracker.ts'

export interface RebuildDependencies
  extends RebuildTables,
    Pick<Runtime, 'now' | 'monotonicMs' | 'random' | 'sleep' | 'logger'> {
  history: History
  config: Config
  hashBacker: HashBacker
  schemaRegistry?: SchemaRegistry | undefined
  /** Names this run; unique. */
  run: string
  /** Whether no other process can work on these tables. */
  isAlone: boolean
  onProgress: (state: RebuildState) => void
}

/** A running rebuild. Its `tables` retry statements, and use half of ClickHouse's cores. */
export interface RebuildContext extends RebuildDependencies {
  tables: Tables
  log: LogPlace
  /** The generation that was current when it began. */
  from: number
  parts: readonly RebuildPart[]
  /** The generation that is built, over all shards. */
  rebuilt: Databases
  tracker: RebuildTracker
  positions: Positions
  signal: AbortSignal
}

/** Begins a phase. Throws if the rebuild was stopped or given up. */
export async function enter(
  { tracker, signal }: Pick<RebuildContext, 'tracker' | 'signal'>,
  phase: WorkPhase,
): Promise<void> {
  signal.throwIfAborted()
  await tracker.enter(phase)
}
