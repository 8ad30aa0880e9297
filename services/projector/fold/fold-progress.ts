/**
 * How far the batches are folded. A fold first notes its target: up to which batch of each run of a projector it goes. When all its
 * statements have succeeded, it records that target as folded. Both stand in the table fold_progress.
 */
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import { type LongRun, longRunsStatement, unfolded } from './batch-conditions.ts'
import { type FoldStep, fill, stepParameters } from './fold-statements.ts'

/** The batches that are not folded yet. */
export interface PendingBatches {
  batches: number
  campaigns: number
  keys: number
  /** Whether some were read again after a restore (positions.ts). */
  isAgain: boolean
  /** When their oldest event entered the log, Unix ms. */
  oldestAt: number
}

const files = {
  noteTarget: readSql('note-target', import.meta.url),
  recordFolded: readSql('record-folded', import.meta.url),
}

// If events waited longer than this before they were folded, there is a backlog.
const backlogMs = 10_000

/** Whether an event that entered the log at `oldestAt` is part of a backlog. Both Unix ms. */
export function isOfBacklog(oldestAt: number, now: number): boolean {
  return now - oldestAt > backlogMs
}

/**
 * One row of `PendingBatches`. A campaign counts once, or nearly so: in a backlog of a few busy campaigns, most batches have the same
 * ones, and a fold would be cut into far too many pieces.
 */
export function pendingBatchesStatement(databases: Databases, longRuns: readonly LongRun[]): Statement {
  const { condition, parameters } = unfolded(databases, longRuns)
  return {
    query: `SELECT count() AS batches, uniqArray(campaign_ids) AS campaigns, sum(batch.keys) AS keys,
              countIf(restamp_before > 0) > 0 AS isAgain,
              toUnixTimestamp64Milli(min(oldest_at)) AS oldestAt
            FROM ${databases.ledger}.batch_log AS batch
            WHERE ${condition}`,
    query_params: parameters,
  }
}

/** Notes the target of the fold that begins with this step. */
export function noteTargetStatement(
  databases: Databases,
  step: FoldStep,
  longRuns: readonly LongRun[],
): Statement {
  const { condition, parameters } = unfolded(databases, longRuns)
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.noteTarget.replaceAll('${unfolded}', condition), databases, step),
    query_params: { ...parameters, holder, fold_id },
  }
}

/** Records that the batches of a target are in the read tables. */
export function recordFoldedStatement(
  databases: Databases,
  step: FoldStep,
  { target, elapsedMs }: { target: bigint; elapsedMs: number },
): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: fill(files.recordFolded, databases, step),
    query_params: {
      holder,
      fold_id,
      target_id: target.toString(),
      elapsed_ms: Math.round(elapsedMs),
    },
  }
}

/** The batches that are not folded yet; `undefined` if there are none. */
export async function readPending(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  longRuns: readonly LongRun[],
): Promise<PendingBatches | undefined> {
  const [pending] = await tables.rows<PendingBatches>(pendingBatchesStatement(databases, longRuns))
  return pending && pending.batches > 0 ? pending : undefined
}

/** The batches that are not folded, by run of a projector: its first and its last one. */
export async function readUnfolded(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
): Promise<{ projector: string; first: number; last: number }[]> {
  const { condition, parameters } = unfolded(databases, await readLongRuns(tables, databases))
  return tables.rows({
    query: `SELECT projector, min(batch.sequence) AS first, max(batch.sequence) AS last
            FROM ${databases.ledger}.batch_log AS batch WHERE ${condition} GROUP BY projector`,
    query_params: parameters,
  })
}

export function readLongRuns(tables: Pick<Tables, 'rows'>, databases: Databases): Promise<LongRun[]> {
  return tables.rows<LongRun>(longRunsStatement(databases))
}
