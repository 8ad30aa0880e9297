/** The checks of the ops ports of all processes. */
import { lagRecords, type PartitionLag } from '../../log/port.ts'
import { timeBound } from '../../tables/clickhouse/statements.ts'
import type { Tables } from '../../tables/port.ts'
import { kept } from '../async/kept.ts'
import { within } from '../async/sleep.ts'
import { messageOf } from '../message-of.ts'

/** One condition that must hold, and a text about it. */
export interface Check {
  ok: boolean
  detail: string
  /** All processes of the service have it alike. It is reported, and makes none of them unready: see `shared`. */
  isShared?: true
}

// Shorter than the timeout of common probes.
export const answerMsMax = 3_000
// Shorter than `answerMsMax`: a scrape waits for this check, and then for the other gauges.
const tablesMsMax = 2_000

/** Whether the projector's loop moves. One that stopped does not, whatever the reason. */
export function loopCheck({
  movedMsAgo,
  stillMsMax,
  failure,
}: {
  movedMsAgo: number
  stillMsMax: number
  failure: string | undefined
}): Check {
  if (failure !== undefined) return { ok: false, detail: `the projector stopped: ${failure}` }
  const detail = `the loop moved ${Math.round(movedMsAgo)} ms ago, at most ${stillMsMax} ms are allowed`
  return { ok: movedMsAgo <= stillMsMax, detail }
}

export function projectorCheck(failure: string | undefined): Check {
  return { ok: failure === undefined, detail: failure ?? 'running' }
}

export function lagCheck(lag: readonly PartitionLag[], recordsMax: number): Check {
  const records = lagRecords(lag)
  return { ok: records <= recordsMax, detail: `${records} records wait, at most ${recordsMax} are allowed` }
}

export function tablesCheck(tables: Pick<Tables, 'rows'>, msMax = tablesMsMax): Promise<Check> {
  const ending = new AbortController()
  const check = async () => {
    const { signal } = ending
    await tables.rows({ query: `SELECT 1 SETTINGS ${timeBound(msMax)}` }, { signal })
    return { ok: true, detail: 'answer' }
  }
  // A statement that nobody waits for any more would keep a connection busy, and delay the end of the process.
  return answered(check, msMax).finally(() => ending.abort())
}

/** Runs a check, with a bound on the time. If what it asks does not answer, the check fails. */
export async function answered(
  check: () => Promise<Check>,
  msMax = answerMsMax,
  late?: () => Error,
): Promise<Check> {
  try {
    return await within(msMax, check(), late)
  } catch (error) {
    return { ok: false, detail: messageOf(error) }
  }
}

/** The same for a check that may take much longer than a probe waits: it tries again while `asked` is away. `asked`: for the error. */
export function sharedAnswered(
  asked: string,
  check: () => Promise<Check>,
  msMax = answerMsMax,
): () => Promise<Check> {
  const sharing = kept(check)
  const late = () => new Error(`${asked} gives no answer within ${msMax} ms`)
  return () => answered(sharing, msMax, late)
}

export function keysCheck(keyRing: { isKnown(): boolean; isFresh(): boolean }): Check {
  return { ok: keyRing.isKnown(), detail: keyRing.isFresh() ? 'up to date' : 'not read recently' }
}

/**
 * A check of what all processes of a service share. If it made them unready, a balancer would send no request to any of them, also
 * those that they can answer without it.
 */
export function shared(check: Check): Check {
  return { ...check, isShared: true }
}
