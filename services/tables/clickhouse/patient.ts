/** Tables that repeat their statements while ClickHouse is away: a rebuild of several hours survives a restart of it. */
import { outagePauses, type RetryDependencies, retry } from '../../runtime/async/retry.ts'
import { around, type Tables, TablesError } from '../port.ts'

export interface Patience extends RetryDependencies {
  /** How long one statement is repeated, ms. */
  retryMsMax: number
  onRetry?: (error: Error) => void
  /** Which errors that may pass are a reason to repeat a statement. Default: all. */
  isRepeated?: (error: TablesError) => boolean
}

/** Only for statements that may run twice. Rejects with the last error when the time is over. */
export function patientTables(
  tables: Tables,
  { retryMsMax, onRetry = () => {}, isRepeated = () => true, ...time }: Patience,
): Tables {
  const policy = {
    isRetryable: (error: unknown) => error instanceof TablesError && error.retryable && isRepeated(error),
    msMax: retryMsMax,
    ...outagePauses,
    onRetry,
  }
  return around(tables, work => retry(work, policy, time))
}
