/**
 * A circuit breaker for rejects: a wrong schema must not drain a whole topic into the dead-letter queue. It is a pure state
 * machine over counts.
 *
 * It looks at the last `windowRecords` records. If more than the share `shareMax` of them was rejected, it trips: the batch
 * that tripped it is not written, its positions stay, and the projector stops.
 */
import { partitionName } from '../../log/port.ts'
import { outagePauses, retry } from '../../runtime/async/retry.ts'
import type { Config } from '../../runtime/config.ts'
import { programVersion } from '../../runtime/program-version.ts'
import { type Databases, type Tables, TablesError } from '../../tables/port.ts'
import { writeNote } from '../projector-log.ts'
import type { ProjectorServiceDependencies } from '../service.ts'

interface Counts {
  records: number
  rejects: number
}

/** Counts a batch. If it may not pass, returns the sums over the window. */
export type RejectCircuitBreaker = (batch: Counts) => Counts | undefined

/**
 * With a share of 1 it never trips. With fewer rejects than the minimum neither: a few bad records in a quiet log are no reason to stop.
 * `earlier`: the batches of earlier runs that still count, the oldest first.
 */
export function createRejectCircuitBreaker(
  {
    PLEDGEVIEW_REJECT_SHARE_MAX: shareMax,
    PLEDGEVIEW_REJECT_WINDOW_RECORDS: windowRecords,
    PLEDGEVIEW_REJECTS_MIN: rejectsMin,
  }: Config,
  earlier: readonly Counts[] = [],
): RejectCircuitBreaker {
  let recent: Counts[] = [...earlier]

  return batch => {
    recent.push(batch)
    let records = 0
    let rejects = 0
    let kept = 0
    // Counts whole batches from the newest back until the window is full. The newest always counts.
    for (let i = recent.length - 1; i >= 0 && records < windowRecords; i--) {
      records += recent[i]?.records ?? 0
      rejects += recent[i]?.rejects ?? 0
      kept++
    }
    recent = recent.slice(-kept)
    return rejects < rejectsMin || rejects <= shareMax * records ? undefined : { records, rejects }
  }
}

/*
 * What the reject circuit breaker has to remember of earlier runs. Without it, a supervisor that restarts a stopped
 * projector would move a whole topic to the dead-letter queue, a little with each restart.
 *
 * The batch log has the counts. Batches that an operator let pass with a higher share do not count, and neither does
 * anything before them. So the documented way on works: one run with a higher share, and then the usual share again.
 */

interface LoggedBatch extends Counts {
  projector: string
  /** The offset to read next, by `topic/partition`. */
  next: Readonly<Record<string, number>>
}

// Longer than any row is worth reading for: a window that spans a week has no burst in it.
const ageDaysMax = 7
const batchesMax = 10_000

/** The circuit breaker, with what it has to remember of earlier runs. Notes the setting of this run for later ones. */
export function openCircuitBreaker(
  { reader, tables, databases, config, run, monotonicMs, random }: ProjectorServiceDependencies,
  signal: AbortSignal,
  onRetry: (error: Error) => void,
): Promise<RejectCircuitBreaker> {
  const policy = {
    // A rebalance at the start is over soon.
    isRetryable: (error: unknown) => !(error instanceof TablesError) || error.retryable,
    msMax: config.PLEDGEVIEW_RETRY_MS_MAX,
    ...outagePauses,
    onRetry,
  }
  async function open(): Promise<RejectCircuitBreaker> {
    const partitions = (await reader.lag()).map(partitionName)
    const earlier = await readRecentBatches(tables, databases, { log: reader.log, partitions }, config)
    await writeNote(tables, databases, run, {
      kind: 'started',
      detail: { rejectShareMax: config.PLEDGEVIEW_REJECT_SHARE_MAX, version: programVersion },
    })
    return createRejectCircuitBreaker(config, earlier)
  }
  return retry(open, policy, { monotonicMs, random, signal })
}

/** The recent batches of all runs in these partitions of the log (`topic/partition`), the oldest first: others have other producers. Throws `TablesError`. */
export async function readRecentBatches(
  tables: Pick<Tables, 'rows'>,
  { base, ledger }: Databases,
  { log, partitions }: { log: string; partitions: readonly string[] },
  { PLEDGEVIEW_REJECT_SHARE_MAX: shareMax, PLEDGEVIEW_REJECT_WINDOW_RECORDS: windowRecords }: Config,
): Promise<Counts[]> {
  const rows = await tables.rows<LoggedBatch>({
    // A retried insert may have stored a row twice.
    query: `SELECT projector, events + rejects AS records, rejects,
              mapFromArrays(
                arrayMap(at -> concat(at.topic, '/', toString(at.partition)), positions), positions.next
              ) AS next
            FROM ${ledger}.batch_log
            WHERE log = {log:String} AND appended_at > now() - INTERVAL ${ageDaysMax} DAY AND events + rejects > 0
              AND arrayExists(at -> has({partitions:Array(String)}, concat(at.topic, '/', toString(at.partition))), positions)
            ORDER BY appended_at DESC, sequence DESC LIMIT 1 BY projector, sequence LIMIT {batchesMax:UInt32}`,
    query_params: { log, partitions: [...partitions], batchesMax: Math.min(batchesMax, windowRecords) },
  })
  const noted = await tables.rows<{ projector: string; share: number }>({
    query: `SELECT projector, max(JSONExtractFloat(detail, 'rejectShareMax')) AS share FROM ${base}.projector_log
            WHERE kind = 'started' AND projector GLOBAL IN
              (SELECT projector FROM ${ledger}.batch_log WHERE appended_at > now() - INTERVAL ${ageDaysMax} DAY)
            GROUP BY projector`,
  })
  const shares = new Map(noted.map(({ projector, share }) => [projector, share]))
  // A rebuild notes no share, and what it lets pass does not count.
  const judged = rows.filter(({ projector }) => shares.has(projector))
  const untilAllowed = judged.findIndex(({ projector }) => (shares.get(projector) ?? 0) > shareMax)
  return firstTimes((untilAllowed < 0 ? judged : judged.slice(0, untilAllowed)).toReversed())
}

/** Leaves out batches that were written again after a kill. They have no position that was not reached before. Pure. */
function firstTimes(batches: readonly LoggedBatch[]): Counts[] {
  const reached = new Map<string, number>()
  return batches.filter(({ next }) => {
    const ahead = Object.entries(next).filter(([place, at]) => at > (reached.get(place) ?? -1))
    for (const [place, at] of ahead) reached.set(place, at)
    return ahead.length > 0
  })
}
