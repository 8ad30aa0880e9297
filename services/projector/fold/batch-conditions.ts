/**
 * Conditions on the batch log (`batch`), which has a month of batches: millions of rows, of which a fold needs the last few.
 *
 * Which batches are folded stands in the table fold_progress: for each run of a projector its last folded batch, and the last one of
 * the fold that is under way. ClickHouse joins the two, so that no list of runs travels with a statement, however many there are.
 */
import type { Databases, Statement } from '../../tables/port.ts'

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
