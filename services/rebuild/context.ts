/** What the parts of a rebuild share. */

import type { Logger } from 'pino'
import type { StateEncoder } from '../../contracts/events/codec.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import type { Config } from '../shared/config.ts'
import type { History } from '../shared/event-log/history.ts'
import type { SchemaRegistry } from '../shared/schema-registry/schema-registry.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { RebuildState, WorkPhase } from './rebuild-log.ts'
import type { ShadowProjector } from './shadow-projector.ts'
import type { RebuildTracker } from './tracker.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface RebuildDependencies {
  tables: Tables
  databases: Databases
  history: History
  config: Config
  hashBacker: HashBacker
  schemaRegistry?: SchemaRegistry | undefined
  /** Frames archived events in the same way as the log's. Default: with the fixed schema ids. */
  encode?: StateEncoder
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
  /** The same tables with all cores, for statements that the fold waits for. */
  tablesOnAllCores: Tables
  /** The same tables without retries, for statements that must not run twice. */
  tablesWithoutRetry: Tables
  tracker: RebuildTracker
  shadowProjector: ShadowProjector
  withdrawals: Withdrawals
  sleep: Sleep
  signal: AbortSignal
}

/** Begins a phase. Throws if the rebuild was stopped or given up. */
export async function enter({ tracker, signal }: RebuildContext, phase: WorkPhase): Promise<void> {
  signal.throwIfAborted()
  await tracker.enter(phase)
}

/** A rollback brings the previous tables back as they were, including any faults in them. */
export function isRollback({ tracker }: RebuildContext): boolean {
  return tracker.detail.request.kind === 'rollback'
}
