/**
 * How far the batches are folded. A fold first notes its target: up to which batch of each run of a projector it goes. When all its
 * statements have succeeded, it records that target as folded. Both stand in the table fold_progress.
 */
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { bounds, type FoldStep, fenceOf, stepParameters } from './fold-statements.ts'

/** The batches that are not folded yet. */
export interface PendingBatches {
  batches: number
  campaigns: number
  keys: number
  /** Whether some were read again after a restore (positions.ts). */
  isAgain: boolean
  /** When their oldest event entered the log, Unix ms. */
  oldestAt: number
  /** Whether one of them is of a backlog of the log. What only waited for a fold is not. */
  isOfBacklog: boolean
}

// If events waited longer than this before they were read, there is a backlog.
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
              toUnixTimestamp64Milli(min(oldest_at)) AS oldestAt,
              max(appended_at - toIntervalMillisecond(${backlogMs}) > oldest_at) > 0 AS isOfBacklog
            FROM ${databases.ledger}.batch_log AS batch
            WHERE ${condition}`,
    query_params: parameters,
  }
}

/** Notes the target of the fold that begins with this step: up to which batch of each run of a projector. Later ones are for the next fold. */
export function noteTargetStatement(
  databases: Databases,
  step: FoldStep,
  longRuns: readonly LongRun[],
): Statement {
  const { condition, parameters } = unfolded(databases, longRuns)
  const { holder, fold_id } = stepParameters(step)
  return {
    query: `INSERT INTO ${databases.ledger}.fold_progress (projector, is_folded, sequence, fold_id, elapsed_ms)
            SELECT batch.projector, false, max(batch.sequence), {fold_id:UInt64}, 0
            FROM ${databases.ledger}.batch_log AS batch
            WHERE ${condition} AND ${fenceOf(databases, step)} GROUP BY batch.projector ${bounds(step)}`,
    query_params: { ...parameters, holder, fold_id },
  }
}

/** Records that the batches of a target are in the read tables. A superseded fold worker must not record what it did not write. */
export function recordFoldedStatement(
  databases: Databases,
  step: FoldStep,
  { target, elapsedMs }: { target: bigint; elapsedMs: number },
): Statement {
  const { holder, fold_id } = stepParameters(step)
  return {
    query: `INSERT INTO ${databases.ledger}.fold_progress (projector, is_folded, sequence, fold_id, elapsed_ms)
            SELECT projector, true, sequence, {fold_id:UInt64}, {elapsed_ms:UInt64}
            FROM ${databases.ledger}.fold_progress FINAL
            WHERE NOT is_folded AND fold_id = {target_id:UInt64} AND ${fenceOf(databases, step)} ${bounds(step)}`,
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

/*
 * Conditions on the batch log (`batch`), which has a month of batches: millions of rows, of which a fold needs the last few.
 *
 * Which batches are folded stands in the table fold_progress: for each run of a projector its last folded batch, and the last one of
 * the fold that is under way. ClickHouse joins the two, so that no list of runs travels with a statement, however many there are.
 */

/** A run of a projector that has many folded batches. */
export interface LongRun {
  projector: string
  /** Its batches up to this one are folded. */
  sequence: number
}

export interface Condition {
  condition: string
  parameters: Record<string, unknown>
}

// A run with fewer batches is read in the time that a term costs.
const termBatchesMin = 20_000
// Each run counts, from a start to its end, also those that have ended in the last 30 days.
const termsMax = 300

/** The runs with most folded batches: rows of `LongRun`. An old reading of them is as good, but costs a little more. */
export function longRunsStatement({ ledger }: Databases): Statement {
  return {
    query: `SELECT toString(projector) AS projector, sequence FROM ${ledger}.fold_progress FINAL
            WHERE is_folded AND sequence >= ${termBatchesMin} ORDER BY sequence DESC LIMIT ${termsMax}`,
  }
}

/** The batches that are not folded. */
export function unfolded(databases: Databases, longRuns: readonly LongRun[]): Condition {
  const { condition, parameters } = skipsFolded(longRuns)
  return {
    condition: `${condition} AND batch.sequence > ${lastIn(progressOf(databases, 'is_folded'))}`,
    parameters,
  }
}

/** The batches of the fold that is under way. `target`: the fold_id under which they were noted. */
export function ofTarget(databases: Databases, longRuns: readonly LongRun[], target: bigint): Condition {
  const { condition, parameters } = unfolded(databases, longRuns)
  const targets = progressOf(databases, 'NOT is_folded AND fold_id = {target:UInt64}')
  return {
    condition: `${condition} AND batch.sequence <= ${lastIn(targets)}`,
    parameters: { ...parameters, target: target.toString() },
  }
}

/** Two arrays of equal length: runs, and a batch of each. */
function progressOf({ ledger }: Databases, which: string): string {
  return `(SELECT (groupArray(toString(projector)), groupArray(sequence)) FROM ${ledger}.fold_progress FINAL WHERE ${which})`
}

/** ClickHouse evaluates a scalar subquery once, before it reads the batch log. A run that is not in the arrays is at batch 0. */
function lastIn(progress: string): string {
  return `transform(toString(batch.projector), tupleElement(${progress}, 1), tupleElement(${progress}, 2), toUInt64(0))`
}

/**
 * Lets ClickHouse leave out what it need not read. It finds the later batches of a long run by the primary key, (projector, sequence).
 * Nothing is left out otherwise (`indexHint`), because many terms cost much for each row: another condition has to say what is meant.
 */
function skipsFolded(longRuns: readonly LongRun[]): Condition {
  if (longRuns.length === 0) return { condition: 'true', parameters: {} }
  const terms = longRuns.map(
    (_, n) => ` OR (batch.projector = {projector_${n}:String} AND batch.sequence > {sequence_${n}:UInt64})`,
  )
  return {
    condition: `indexHint(batch.projector NOT IN {longest:Array(String)}${terms.join('')})`,
    parameters: {
      longest: longRuns.map(({ projector }) => projector),
      ...Object.fromEntries(
        longRuns.flatMap(({ projector, sequence }, n) => [
          [`projector_${n}`, projector],
          [`sequence_${n}`, sequence],
        ]),
      ),
    },
  }
}
