/** What the ops ports of all processes check. */
import type { PartitionLag } from './event-log/port.ts'
import type { Check } from './ops-server.ts'
import type { Tables } from './tables/port.ts'

// A projector's loop turns twice a second, but for a batch that ClickHouse does not take.
const turnMsMax = 30_000

/** The loop moves; one that has stopped for a reason does not count as stuck. */
export function loopCheck({
  turnedMsAgo,
  failure,
}: {
  turnedMsAgo: number
  failure: string | undefined
}): Check {
  const ok = failure !== undefined || turnedMsAgo < turnMsMax
  return { ok, detail: `turned ${Math.round(turnedMsAgo)} ms ago` }
}

export function projectorCheck(failure: string | undefined): Check {
  return { ok: failure === undefined, detail: failure ?? 'running' }
}

export function lagCheck(lag: readonly PartitionLag[], recordsMax: number): Check {
  const records = lagRecords(lag)
  return { ok: records <= recordsMax, detail: `${records} records wait; ${recordsMax} may` }
}

/** Records that wait, in all partitions. */
export function lagRecords(lag: readonly PartitionLag[]): number {
  return lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
}

export async function tablesCheck(tables: Pick<Tables, 'rows'>): Promise<Check> {
  try {
    await tables.rows({ query: 'SELECT 1 SETTINGS max_execution_time = 2' })
    return { ok: true, detail: 'answer' }
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) }
  }
}

export function keysCheck(isReady: boolean): Check {
  return { ok: isReady, detail: isReady ? 'followed' : 'not read lately' }
}
