/** Tables that retry their statements, so that a rebuild of several hours survives a restart of ClickHouse. */
import { retry } from '../../runtime/retry.ts'
import type { Sleep } from '../../runtime/sleep.ts'
import { type Tables, TablesError } from '../../tables/port.ts'

export interface RetrySettings {
  /** How long one statement is retried, ms. */
  retryMsMax: number
  monotonicMs: () => number
  sleep: Sleep
  onRetry: (error: Error) => void
}

const policy = {
  isRetryable: (error: unknown) => error instanceof TablesError && error.retryable,
  pauseMsMin: 200,
  pauseMsMax: 5_000,
}

/** Only for statements that may run twice. Rejects with the last error when the time is over. */
export function withRetry(
  tables: Tables,
  { retryMsMax, monotonicMs, sleep, onRetry }: RetrySettings,
): Tables {
  function retried<T>(work: () => Promise<T>): Promise<T> {
    return retry(work, { ...policy, msMax: retryMsMax, onRetry }, { monotonicMs, sleep })
  }

  return {
    rows: (statement, options) => retried(() => tables.rows(statement, options)),
    run: (statement, options) => retried(() => tables.run(statement, options)),
    insert: (insert, options) => retried(() => tables.insert(insert, options)),
    close: () => tables.close(),
  }
}
