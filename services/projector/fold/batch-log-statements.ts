/**
 * Statements on the batch log, which has a month of batches: millions of rows, of which a fold needs the last few.
 */
import type { Databases, Statement } from '../../shared/tables/port.ts'
import type { BatchRange, Progress } from './fold-statements.ts'

/**
 * The batches that are not in the read tables yet, by projector. A campaign counts once, or nearly so: in a backlog of a few busy
 * campaigns, most batches have the same ones, and a fold would be cut into far too many pieces.
 */
export function pendingBatchesStatement(databases: Databases, folded: Progress): Statement {
  const { condition, parameters } = afterByKey(folded)
  return {
    query: `SELECT projector, max(batch.sequence) AS sequence, uniqArray(campaign_ids) AS campaigns,
              sum(batch.keys) AS keys, toUnixTimestamp64Milli(min(oldest_at)) AS oldestAt
            FROM ${databases.model}.batch_log AS batch
            WHERE ${condition} AND batch.sequence > {folded:Map(String, UInt64)}[projector]
            GROUP BY projector`,
    query_params: { ...parameters, folded },
  }
}

/** The batches with keys after `seen`, by projector. */
export function pendingKeysStatement(databases: Databases, seen: Progress): Statement {
  const { condition, parameters } = afterByKey(seen)
  return {
    query: `SELECT projector, max(batch.sequence) AS sequence FROM ${databases.model}.batch_log AS batch
            WHERE keys > 0 AND ${condition} AND batch.sequence > {seen:Map(String, UInt64)}[projector]
            GROUP BY projector`,
    query_params: { ...parameters, seen },
  }
}

interface Condition {
  condition: string
  parameters: Record<string, unknown>
}

/** The condition on the batch log (`batch`) for a `BatchRange`. */
export function inRange({ from, to }: BatchRange): Condition {
  const { condition, parameters } = afterByKey(from)
  return {
    condition: `batch.projector IN {projectors:Array(String)} AND ${condition}
          AND batch.sequence > {from:Map(String, UInt64)}[batch.projector]
          AND batch.sequence <= {to:Map(String, UInt64)}[batch.projector]`,
    parameters: { ...parameters, projectors: Object.keys(to), from, to },
  }
}

// A run of a projector with fewer batches is read in the time that a term costs.
const termBatchesMin = 20_000
// Each run counts, from a start to its end, also those that have ended in the last 30 days.
const termsMax = 300

/**
 * Lets ClickHouse leave out what it need not read: batches that are not after these. It finds the others by the primary key,
 * (projector, sequence), with one term for each run of a projector with many batches. For a map from projectors to numbers it would read
 * the whole table. Nothing is left out otherwise (`indexHint`), because many terms cost much for each row: another condition has to say
 * what is meant.
 */
function afterByKey(known: Progress): Condition {
  const longest = Object.entries(known)
    .filter(([, sequence]) => sequence >= termBatchesMin)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, termsMax)
  const terms = longest.map(
    (_, n) => ` OR (batch.projector = {projector_${n}:String} AND batch.sequence > {sequence_${n}:UInt64})`,
  )
  return {
    condition: `indexHint(batch.projector NOT IN {longest:Array(String)}${terms.join('')})`,
    parameters: {
      longest: longest.map(([projector]) => projector),
      ...Object.fromEntries(
        longest.flatMap(([projector, sequence], n) => [
          [`projector_${n}`, projector],
          [`sequence_${n}`, sequence],
        ]),
      ),
    },
  }
}
