/** Reads how far the fold is: from the batch log, which is ahead of it, and from the fold log. */
import type { Databases, Tables } from '../../shared/tables/port.ts'
import { pendingBatchesStatement, pendingKeysStatement } from './batch-log-statements.ts'
import {
  type BatchRange,
  confirmedFoldStatement,
  type Progress,
  progressStatement,
} from './fold-statements.ts'

/** The batches that are not folded yet. */
export interface PendingBatches extends BatchRange {
  campaigns: number
  keys: number
  /** When their oldest event entered the log, Unix ms. */
  oldestAt: number
}

interface PendingRow {
  projector: string
  sequence: number
  campaigns: number
  keys: number
  oldestAt: number
}

/** The batches after `progress`; `undefined` if there are none. */
export async function readPending(
  tables: Tables,
  databases: Databases,
  progress: Progress,
): Promise<PendingBatches | undefined> {
  const pending = await tables.rows<PendingRow>(pendingBatchesStatement(databases, progress))
  if (pending.length === 0) return undefined
  return {
    to: Object.fromEntries(pending.map(row => [row.projector, row.sequence])),
    from: Object.fromEntries(pending.map(row => [row.projector, progress[row.projector] ?? 0])),
    campaigns: sum(pending.map(row => row.campaigns)),
    keys: sum(pending.map(row => row.keys)),
    oldestAt: Math.min(...pending.map(row => row.oldestAt)),
  }
}

/** How far the batches with keys are, by projector; `undefined` if there are none after `seen`. */
export async function readPendingKeys(
  tables: Tables,
  databases: Databases,
  seen: Progress,
): Promise<Progress | undefined> {
  const pending = await tables.rows<{ projector: string; sequence: number }>(
    pendingKeysStatement(databases, seen),
  )
  return pending.length === 0
    ? undefined
    : Object.fromEntries(pending.map(row => [row.projector, row.sequence]))
}

/** The highest fold_id up to which no row is in doubt. */
export async function readConfirmed(tables: Tables, databases: Databases): Promise<bigint> {
  const [row] = await tables.rows<{ foldId: string }>(confirmedFoldStatement(databases))
  return BigInt(row?.foldId ?? '0')
}

/** How far the fold log says that each projector's batches are folded. */
export async function readProgress(tables: Tables, databases: Databases): Promise<Progress> {
  const rows = await tables.rows<{ projector: string; sequence: number }>(progressStatement(databases))
  return Object.fromEntries(rows.map(row => [row.projector, row.sequence]))
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
