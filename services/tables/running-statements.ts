/** Which statements ClickHouse runs. After a lost connection, only this tells that a statement has ended. */
import type { Tables } from './port.ts'

/** The clock (ms, monotonic) and the pauses of a wait. */
export interface Time {
  monotonicMs: () => number
  sleep: (ms: number) => Promise<void>
}

export interface WaitOptions extends Time {
  /** How long to wait. */
  msMax: number
}

/** A statement still runs after all of the time that there was to wait. */
export class StillRuns extends Error {
  override name = 'StillRuns'
}

const pauseMs = 100

/** Resolves once no statement runs that contains one of these texts. Throws `StillRuns`, or what ClickHouse throws. */
export async function untilNoneRuns(
  tables: Pick<Tables, 'rows'>,
  texts: readonly string[],
  { msMax, monotonicMs, sleep }: WaitOptions,
): Promise<void> {
  const deadline = monotonicMs() + msMax
  for (;;) {
    const [running] = await tables.rows<{ statements: number }>({
      // The condition excludes this query itself.
      query: `SELECT count() AS statements FROM system.processes
              WHERE multiSearchAny(query, {texts:Array(String)}) AND position(query, 'system.processes') = 0`,
      query_params: { texts: [...texts] },
    })
    if (running?.statements === 0) return
    if (monotonicMs() > deadline) throw new StillRuns(`a statement still runs after ${msMax} ms: ${texts[0]}`)
    await sleep(pauseMs)
  }
}
