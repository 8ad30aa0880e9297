/**
 * How far the batches are folded. A fold takes the batches that it finds, up to the last one of each run of a projector. When all its
 * statements have succeeded, it records those as folded, in the table fold_progress.
 */
import type { Databases, Statement, Tables } from '../../tables/port.ts'
import { bounds, type FoldStep, fenceOf, stepParameters } from './fold-statements.ts'

/** The batches that are not folded yet. */
export interface PendingBatches {
  batches: number
  campaigns: number
  keys: number
  /** Whether some were read again after a restore (restore.ts). */
  isAgain: boolean
  /** When their oldest event entered the log, Unix ms. */
  oldestAt: number
  /** Whether one of them is of a backlog of the log. What only waited for a fold is not. */
  isOfBacklog: boolean
  /** The runs of projectors that they are of: at most `runsMax`. If there are more runs, their batches are not counted here. */
  runs: readonly PendingRun[]
}

/** A run of a projector: its name, its last batch that is folded, and the last one that is pending. */
export type PendingRun = readonly [projector: string, folded: number, last: number]

// They travel as parameters of a statement. ClickHouse allows one 128 KiB.
export const runsMax = 300

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
    query: `SELECT sum(run.batches) AS batches, uniqArrayMerge(run.ids) AS campaigns, sum(run.keys) AS keys, max(run.again) AS isAgain,
              toUnixTimestamp64Milli(min(run.oldest)) AS oldestAt, max(run.late) AS isOfBacklog,
              groupArray((run.name, run.first - 1, run.last)) AS runs
            FROM
            (
              SELECT toString(projector) AS name, min(sequence) AS first, max(sequence) AS last, count() AS batches,
                uniqArrayState(campaign_ids) AS ids, sum(batch.keys) AS keys, countIf(restamp_before > 0) > 0 AS again,
                min(oldest_at) AS oldest, max(appended_at - toIntervalMillisecond(${backlogMs}) > oldest_at) AS late
              FROM ${databases.ledger}.batch_log AS batch
              WHERE ${condition}
              GROUP BY name ORDER BY name LIMIT ${runsMax}
            ) AS run`,
    query_params: parameters,
  }
}

/** Records that the pending batches of these runs are in the read tables. A superseded fold worker must not record what it did not write. */
export function recordFoldedStatement(
  databases: Databases,
  step: FoldStep,
  { runs, elapsedMs }: { runs: readonly PendingRun[]; elapsedMs: number },
): Statement {
  return {
    query: `INSERT INTO ${databases.ledger}.fold_progress (projector, sequence, fold_id, elapsed_ms)
            SELECT run.1, run.2, {fold_id:UInt64}, {elapsed_ms:UInt64}
            FROM (SELECT arrayJoin(arrayZip({projectors:Array(String)}, {lasts:Array(UInt64)})) AS run)
            WHERE ${fenceOf(databases, step)} ${bounds(step)}`,
    query_params: { ...stepParameters(step), elapsed_ms: Math.round(elapsedMs), ...parametersOf(runs) },
  }
}

/** The batches that are not folded yet; `undefined` if there are none. `known`: the long runs, if the caller has read them before. */
export async function readPending(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  known?: readonly LongRun[],
): Promise<PendingBatches | undefined> {
  const longRuns = known ?? (await readLongRuns(tables, databases))
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

const wholeFoldIds = 5_000

/**
 * Appends batches with every campaign of the ledger to the batch log, so that the next fold is one of everything. Does nothing if a run
 * whose name ends with `unless` has appended them all before.
 */
export function foldWholeStatement(
  { ledger }: Databases,
  projector: string,
  unless = 'no such run',
): Statement {
  const parts = `(SELECT intDiv(uniq(campaign_id), ${wholeFoldIds}) + 1 FROM ${ledger}.campaign_ledger)`
  return {
    query: `INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
            SELECT {projector:String}, row_number() OVER (ORDER BY part), [], 0, 0, 1, groupArray(campaign_id), now64(3, 'UTC')
            FROM
            (
              SELECT DISTINCT campaign_id, cityHash64(campaign_id) % ${parts} AS part
              FROM ${ledger}.campaign_ledger
            )
            WHERE ${parts} > ifNull((SELECT max(batches) FROM
              (SELECT count() AS batches FROM ${ledger}.batch_log WHERE endsWith(projector, {unless:String}) GROUP BY projector)), 0)
            GROUP BY part
            SETTINGS async_insert = 0, insert_deduplicate = 0`,
    query_params: { projector, unless },
  }
}

export function readLongRuns(tables: Pick<Tables, 'rows'>, databases: Databases): Promise<LongRun[]> {
  return tables.rows<LongRun>(longRunsStatement(databases))
}

/*
 * Conditions on the batch log (`batch`), which has a month of batches: millions of rows, of which a fold needs the last few.
 *
 * Which batches are folded stands in the table fold_progress: for each run of a projector its last folded batch. ClickHouse joins the two
 * where the pending batches are looked for, so that no list of runs travels with that statement, however many there are.
 */

/** A run of a projector that has many folded batches. */
export interface LongRun {
  projector: string
  /** Its batches up to this one are folded. */
  sequence: number
}

interface Condition {
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
            WHERE sequence >= ${termBatchesMin} ORDER BY sequence DESC LIMIT ${termsMax}`,
  }
}

/** The batches that are not folded. */
export function unfolded({ ledger }: Databases, longRuns: readonly LongRun[]): Condition {
  const { condition, parameters } = skipsFolded(longRuns)
  // ClickHouse evaluates a scalar subquery once, before it reads the batch log.
  const progress = `(SELECT (groupArray(toString(projector)), groupArray(sequence)) FROM ${ledger}.fold_progress FINAL)`
  const folded = lastIn(`tupleElement(${progress}, 1)`, `tupleElement(${progress}, 2)`)
  return { condition: `${condition} AND batch.sequence > ${folded}`, parameters }
}

/** The pending batches of these runs. */
export function ofRuns(longRuns: readonly LongRun[], runs: readonly PendingRun[]): Condition {
  const { condition, parameters } = skipsFolded(longRuns)
  const [folded, last] = ['folded', 'lasts'].map(of =>
    lastIn('{projectors:Array(String)}', `{${of}:Array(UInt64)}`),
  )
  return {
    condition: `${condition} AND batch.sequence > ${folded} AND batch.sequence <= ${last}`,
    parameters: { ...parameters, ...parametersOf(runs) },
  }
}

function parametersOf(runs: readonly PendingRun[]): Record<'projectors' | 'folded' | 'lasts', unknown[]> {
  return {
    projectors: runs.map(([projector]) => projector),
    folded: runs.map(([, folded]) => folded),
    lasts: runs.map(([, , last]) => last),
  }
}

/** The sequence number that stands beside the batch's run in two arrays of equal length; 0 if the run is not in them. */
export function lastIn(projectors: string, sequences: string): string {
  return `transform(toString(batch.projector), ${projectors}, ${sequences}, toUInt64(0))`
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
