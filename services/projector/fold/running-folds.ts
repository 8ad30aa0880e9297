/**
 * Whether ClickHouse still runs statements of the fold. A new leader waits until it runs none of an older epoch. Time alone does not tell: a
 * statement is cancelled after its time, but the end of an insert, when its rows go to the disk, cannot be cancelled.
 *
 * On replicas, only the one that answers is asked. To ask all replicas would not end this: the one that stands still is the one that
 * does not answer, and a fold cannot wait for a replica that may be gone for good. deploy/grow.md tells operators what
 * that means.
 */

import { untilNoneRuns, type WaitOptions } from '../../tables/clickhouse/running-statements.ts'
import { qualified } from '../../tables/generations.ts'
import { type Databases, type Tables, TablesError } from '../../tables/port.ts'

// Every table that a statement of the line writes (fold-statements.ts).
const written = [
  'campaigns',
  'api_keys',
  'watermarks',
  'fold_progress',
  'quarantine',
  'campaign_days',
  'history_marks',
]

/**
 * Resolves once no statement of the fold runs on these tables. Throws a retryable `TablesError` if one still runs after the time to
 * wait, and one that is not retryable if the user may not see running statements.
 */
export async function untilNoFoldRuns(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  wait: WaitOptions,
): Promise<void> {
  try {
    // The name ends with a space or with the line.
    const inserts = written.flatMap(table =>
      [' ', '\n'].map(end => `INSERT INTO ${qualified(table, databases)}${end}`),
    )
    await untilNoneRuns(tables, inserts, wait)
  } catch (error) {
    if (!(error instanceof TablesError && error.type === 'ACCESS_DENIED')) throw error
    throw new TablesError(
      'the fold has to see which statements run: GRANT SELECT ON system.processes to the user of the projector',
      { retryable: false, type: error.type, cause: error },
    )
  }
}
