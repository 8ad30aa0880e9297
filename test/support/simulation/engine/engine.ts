/**
 * What the simulation needs of ClickHouse: statements that are split into their start and their end, so that virtual time can
 * pass between the two. There are two implementations: a model in memory, and ClickHouse.
 */
import type { Statement, TableInsert } from '../../../../services/tables/port.ts'
import type { WriteKind } from './statement-kinds.ts'

/** Makes a statement's rows visible. `onlySome`: those of `isOfFirstBlock`, as if it was cancelled between two blocks. */
export type Publish = (onlySome: boolean) => Promise<void>

/** Times are Unix milliseconds of ClickHouse's clock. */
export interface Engine {
  /** Reads now. `now64` is the given time, at which the statement started. */
  read(statement: Statement, startedAt: number): Promise<unknown[]>
  /** Runs a statement that writes on what is visible now, without making its rows visible. */
  stage(statement: Statement, kind: WriteKind, startedAt: number): Promise<Publish>
  insert(insert: TableInsert): Promise<void>
  /** The campaigns that a fold looks at. */
  touchedBy(statement: Statement): Promise<readonly string[]>
}

/** Which half of the campaigns a statement shows that is cancelled halfway. */
export function isOfFirstBlock(campaignId: string): boolean {
  return /[02468]$/.test(campaignId)
}
