/**
 * Whether ClickHouse still runs statements of fold workers. A statement is cancelled after its time, but the end of an insert,
 * when its rows go to the disk, cannot be cancelled. On a slow disk it may take longer than the commit horizon. So time alone
 * does not tell that a statement has ended.
 *
 * On replicas, only the one that answers is asked. A statement that still runs on another replica, beyond the commit horizon, is not
 * seen. To ask all replicas would not end this: the one that stands still is the one that does not answer, and a fold cannot wait
 * for a replica that may be gone for good. deploy/README.md (Scaling) tells operators what that means.
 */
import { type Databases, type Tables, TablesError } from '../../shared/tables/port.ts'
import { StillRuns, untilNoneRuns, type WaitOptions } from '../../shared/tables/running-statements.ts'

/** Resolves once no statement runs that inserts into the read tables of this database. Throws `StillRuns`. */
export function untilNoFoldRuns(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  wait: WaitOptions,
): Promise<void> {
  return untilNoneRuns(tables, [`INSERT INTO ${model}.campaigns `, `INSERT INTO ${model}.api_keys `], wait)
}

/**
 * The same for a fold worker that has waited for the time of these statements already. Throws a retryable `TablesError` if one
 * still runs. Without the right to see running statements, the time has to be enough.
 */
export async function untilNoFoldRunsIfSeen(...call: Parameters<typeof untilNoFoldRuns>): Promise<void> {
  try {
    await untilNoFoldRuns(...call)
  } catch (error) {
    if (error instanceof StillRuns) throw new TablesError(error.message, { retryable: true, cause: error })
    if (!(error instanceof TablesError && error.type === 'ACCESS_DENIED')) throw error
  }
}
