/**
 * Attempts: processes that build, promote or drop a generation take turns in the generation log (tables/generation-log.ts), on one server.
 *
 * Promises:
 * - The row that names the current generation is written only by the highest attempt, only if that is not given up, if the current one is
 *   still the one that it began from, and if the new one is not dropped. These conditions stand in the log alone, in one scan.
 * - If the process of an attempt says nothing for a minute, by the clock of the process that waits for it, it is given up. The row may be
 *   on its way then. So the process that gives it up waits until no such statement runs, and reads which generation is current.
 */
import type { Runtime } from '../runtime/runtime.ts'
import { untilNoneRuns } from '../tables/clickhouse/statements.ts'
import { type GenerationLog, readCurrent, readGenerations, writeRow } from '../tables/generation-log.ts'
import type { Tables } from '../tables/port.ts'

/** Another attempt is higher, or this one was given up. Nothing was promoted or dropped. */
export class AttemptLost extends Error {
  override name = 'AttemptLost'
}

const takesMax = 6

/** Takes the next attempt. Two processes that do so at once get the same number, and both try again. */
export async function takeAttempt(
  { tables, base }: GenerationLog,
  run: string,
  { sleep, random }: Pick<Runtime, 'sleep' | 'random'>,
): Promise<number> {
  const log = `${base}.generation_log`
  for (let take = 1; take <= takesMax; take++) {
    await tables.run({
      query: `INSERT INTO ${log} (kind, attempt, run) SELECT 'attempt', max(log.attempt) + 1, {run:String} FROM ${log} AS log
              SETTINGS async_insert = 0`,
      query_params: { run },
    })
    const holders = await tables.rows<{ attempt: number; run: string }>({
      query: `SELECT attempt, run FROM ${log} WHERE kind = 'attempt' AND attempt = (SELECT max(attempt) FROM ${log})`,
    })
    const [first, ...others] = holders
    if (first?.run === run && others.length === 0) return first.attempt
    await sleep(100 * 2 ** take * (0.5 + random() / 2))
  }
  throw new AttemptLost('other processes work on generations at the same time')
}

/** Makes a generation the current one. Repeating it is harmless. Throws `AttemptLost`, or if another one became current. */
export async function promoteGeneration(
  { tables, base }: GenerationLog,
  { attempt, run, from, to }: { attempt: number; run: string; from: number; to: number },
): Promise<void> {
  await tables.run({
    query: fenced(base, 'current', 'current = {from:UInt32}'),
    query_params: { attempt, run, from, of: to },
  })
  if ((await readCurrent(tables, base)) === to) return
  throw new AttemptLost(`generation ${to} was not promoted: another process took over`)
}

/** Notes that a generation is dropped, unless it is the current one. Only then its databases may go. */
export async function noteDropped(
  log: GenerationLog,
  { attempt, run, generation }: { attempt: number; run: string; generation: number },
): Promise<void> {
  await log.tables.run({
    query: fenced(log.base, 'dropped', 'current != {of:UInt32}'),
    query_params: { attempt, run, of: generation },
  })
  const all = await readGenerations(log)
  if (all.some(({ number, isDropped }) => number === generation && isDropped)) return
  throw new AttemptLost(
    `generation ${generation} was not dropped: it is current, or another process took over`,
  )
}

// In an order by which they are told from the other rows of the log (`writeRow`).
const fencedColumns = 'kind, attempt, run, generation'

/** The INSERT statements that promote or drop. A process that gives up an attempt waits until none of them runs (`untilEnded`). */
function fenced(base: string, kind: 'current' | 'dropped', condition: string): string {
  return `INSERT INTO ${base}.generation_log (${fencedColumns})
          SELECT '${kind}', {attempt:UInt64}, {run:String}, {of:UInt32}
          FROM
          (
            SELECT max(log.attempt) AS highest, countIf(kind = 'given up' AND log.attempt = {attempt:UInt64}) AS given_up,
              argMaxIf(log.generation, log.attempt, kind = 'current') AS current,
              countIf(kind = 'dropped' AND log.generation = {of:UInt32}) AS dropped
            FROM ${base}.generation_log AS log
          )
          WHERE highest = {attempt:UInt64} AND given_up = 0 AND dropped = 0 AND ${condition}
          SETTINGS async_insert = 0, insert_deduplicate = 0`
}

const silentMsMax = 60_000
const statementMsMax = 60_000

/** The generation log is the same on every server. */
interface WatchDependencies extends GenerationLog, Pick<Runtime, 'monotonicMs' | 'sleep'> {
  /** On one of them the statements of attempts run. */
  servers: readonly Pick<Tables, 'rows'>[]
}

/**
 * For a fold worker that finds the fold held by an attempt: whether it is given up, or has ended without a promotion. Gives it up after a
 * minute of silence. It has to look which generation is current after that.
 */
export function watchAttempts({
  tables,
  base,
  servers,
  monotonicMs,
  sleep,
}: WatchDependencies): (attempt: number) => Promise<boolean> {
  let seen = { attempt: 0, sign: '', at: 0 }
  return async attempt => {
    const [row] = await tables.rows<{ sign: string; givenUp: number }>({
      query: `SELECT toString(max(written_at)) AS sign, countIf(kind = 'given up') AS givenUp
              FROM ${base}.generation_log WHERE attempt = {attempt:UInt64}`,
      query_params: { attempt },
    })
    const sign = row?.sign ?? ''
    if (seen.attempt !== attempt || seen.sign !== sign) seen = { attempt, sign, at: monotonicMs() }
    const isGivenUp = (row?.givenUp ?? 0) > 0
    if (!isGivenUp && monotonicMs() - seen.at < silentMsMax) return false
    if (!isGivenUp) await writeRow({ tables, base }, { kind: 'given up', attempt })
    for (const server of servers) await untilEnded(server, base, { monotonicMs, sleep })
    return true
  }
}

/** Resolves when no statement runs that promotes or drops. On a cluster its log has another name on each server. */
export function untilEnded(
  named: Pick<Tables, 'rows'>,
  base: string,
  time: Pick<Runtime, 'monotonicMs' | 'sleep'>,
): Promise<void> {
  const own = base.replace(/_all$/, '')
  return untilNoneRuns(named, [`INSERT INTO ${own}.generation_log (${fencedColumns})`], {
    ...time,
    msMax: statementMsMax,
  })
}
