/** Tables that try again what may yet succeed, so that a rebuild of hours survives a restart of ClickHouse. */
import type { Sleep } from '../projector/sleep.ts'
import { type Tables, TablesError } from '../shared/tables/port.ts'

export interface Patience {
  /** How long one statement is tried again, ms. */
  retryMsMax: number
  monotonicMs: () => number
  sleep: Sleep
  onRetry: (error: Error) => void
}

const pauseMsMax = 5_000

/** For statements that may run twice. Rejects with the last error once the time is over. */
export function patientTables(tables: Tables, { retryMsMax, monotonicMs, sleep, onRetry }: Patience): Tables {
  async function patiently<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = monotonicMs()
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        const mayPass = error instanceof TablesError && error.retryable
        if (!mayPass || monotonicMs() - startedAt > retryMsMax) throw error
        onRetry(error)
        await sleep(Math.min(pauseMsMax, 100 * 2 ** Math.min(attempt, 10)))
      }
    }
  }

  return {
    rows: (statement, options) => patiently(() => tables.rows(statement, options)),
    run: (statement, options) => patiently(() => tables.run(statement, options)),
    insert: (insert, options) => patiently(() => tables.insert(insert, options)),
    close: () => tables.close(),
  }
}
