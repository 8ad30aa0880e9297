/**
 * What the simulation needs of ClickHouse: statements that are taken apart into their start and their end, so that virtual
 * time can lie between the two. Two implementations: a model in memory, and the real engine in-process.
 */
import type { Statement, TableInsert } from '../../../services/shared/tables/port.ts'
import type { WriteKind } from './statement-kinds.ts'

/** Rows that a statement has made and that nobody can see yet. */
export interface StagedRows {
  /** Makes them visible. `onlySome`: those of `isOfFirstBlock` alone, as when a statement is ended between two blocks. */
  publish(options?: { onlySome?: boolean }): Promise<void>
}

/** Moments are Unix milliseconds of ClickHouse's clock. */
export interface Engine {
  /** Reads now; `now64` is the given moment, at which the statement started. */
  read(statement: Statement, startedAt: number): Promise<unknown[]>
  /** Runs a fold statement over what is visible now, without showing what comes of it. */
  stage(statement: Statement, kind: 'fold' | 'restamp', startedAt: number): Promise<StagedRows>
  /** Runs one of the small statements of the folder whole. */
  run(statement: Statement, kind: Exclude<WriteKind, 'fold' | 'restamp'>): Promise<void>
  insert(insert: TableInsert): Promise<void>
}

/** Which half of the campaigns a statement shows that is ended half way. */
export function isOfFirstBlock(campaignId: string): boolean {
  return /[02468]$/.test(campaignId)
}
