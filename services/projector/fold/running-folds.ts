/**
 * Which statements of fold workers ClickHouse still runs. A statement is cancelled after its time, but the end of an insert,
 * when its rows go to the disk, cannot be cancelled. On a slow disk it may take longer than the commit horizon. So time alone
 * does not tell that a statement has ended.
 */
import type { Sleep } from '../../shared/sleep.ts'
import { type Databases, type Tables, TablesError } from '../../shared/tables/port.ts'

export interface UntilNoFoldRunsOptions {
  /** How long to wait. */
  msMax: number
  monotonicMs: () => number
  sleep: Sleep
}

const pauseMs = 100

/**
 * Resolves once no statement runs that inserts into the read tables of this database. Throws a retryable `TablesError` after
 * `msMax`. A user without the right to see running statements is told nothing: then it resolves at once.
 */
export async function untilNoFoldRuns(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  { msMax, monotonicMs, sleep }: UntilNoFoldRunsOptions,
): Promise<void> {
  const texts = [`INSERT INTO ${model}.campaigns `, `INSERT INTO ${model}.api_keys `]
  const deadline = monotonicMs() + msMax
  while ((await countRunning(tables, texts)) > 0) {
    if (monotonicMs() > deadline) {
      throw new TablesError(`a fold statement still runs after ${msMax} ms`, { retryable: true })
    }
    await sleep(pauseMs)
  }
}

async function countRunning(tables: Pick<Tables, 'rows'>, texts: readonly string[]): Promise<number> {
  try {
    const [running] = await tables.rows<{ statements: number }>({
      // The condition excludes this query itself.
      query: `SELECT count() AS statements FROM system.processes
              WHERE multiSearchAny(query, {texts:Array(String)}) AND position(query, 'system.processes') = 0`,
      query_params: { texts: [...texts] },
    })
    return running?.statements ?? 0
  } catch (error) {
    if (error instanceof TablesError && error.type === 'ACCESS_DENIED') return 0
    throw error
  }
}
