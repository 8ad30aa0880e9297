/** What the ops ports of all processes check. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PartitionLag } from './event-log/port.ts'
import type { Tables } from './tables/port.ts'

/** One thing that must hold, with what to say about it. */
export interface Check {
  ok: boolean
  detail: string
}

// A projector's loop turns twice a second, but for a batch that ClickHouse does not take.
const turnMsMax = 30_000
// Below what whoever probes allows for an answer.
const answerMsMax = 3_000

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

export function tablesCheck(tables: Pick<Tables, 'rows'>): Promise<Check> {
  return answered(async () => {
    await tables.rows({ query: 'SELECT 1 SETTINGS max_execution_time = 2' })
    return { ok: true, detail: 'answer' }
  })
}

/** The check, or that what it asks does not answer: who probes does not wait longer than for that. */
export async function answered(check: () => Promise<Check>): Promise<Check> {
  const over = new AbortController()
  const late = sleep(answerMsMax, undefined, { signal: over.signal }).then(() => {
    throw new Error(`no answer within ${answerMsMax} ms`)
  })
  try {
    return await Promise.race([check(), late])
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) }
  } finally {
    over.abort()
    late.catch(() => undefined)
  }
}

export function keysCheck(isReady: boolean): Check {
  return { ok: isReady, detail: isReady ? 'followed' : 'not read lately' }
}
