/** Which statements ClickHouse runs. After a lost connection, only this tells that a statement has ended. */
import { type Sleep, untilFound } from '../../runtime/async/sleep.ts'
import { type Tables, TablesError } from '../port.ts'

export interface WaitOptions {
  /** How long to wait. */
  msMax: number
  monotonicMs: () => number
  sleep: Sleep
}

/** Resolves once no statement runs that contains one of these texts. Throws `TablesError`, a retryable one if it waited in vain. */
export async function untilNoneRuns(
  tables: Pick<Tables, 'rows'>,
  texts: readonly string[],
  { msMax, ...time }: WaitOptions,
): Promise<void> {
  const none = await untilFound(
    msMax,
    async () => {
      const [running] = await tables.rows<{ statements: number }>({
        // The condition excludes this query itself.
        query: `SELECT count() AS statements FROM system.processes
              WHERE multiSearchAny(query, {texts:Array(String)}) AND position(query, 'system.processes') = 0`,
        query_params: { texts: [...texts] },
      })
      return running?.statements === 0 || undefined
    },
    time,
  )
  if (!none)
    throw new TablesError(`a statement still runs after ${msMax} ms: ${texts[0]}`, { retryable: true })
}
