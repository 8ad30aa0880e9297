/**
 * Records how often each API key is used: counts in memory, and writes the counts every few seconds.
 *
 * Promises:
 * - A request never waits for it, and no failure of it reaches a request.
 * - A retry, a restart and a late insert count nothing twice (usage-counts.ts).
 * - A crash loses what was counted since the last flush: `flushMs`, or as long as ClickHouse did not take inserts. Then the
 *   row of the run says until when its counts are complete, so that no reader takes a used key for an unused one.
 *
 * What is known of a run rests on this: a process that cannot read ClickHouse answers no key after a minute (key-ring.ts).
 * Only if ClickHouse takes no inserts of this process for an hour, answers its reads, and the process is then killed, a
 * key that was issued in the meantime can seem unused.
 */

import type { Sleep } from '../../shared/sleep.ts'
import type { Databases, Tables } from '../../shared/tables/port.ts'
import { createUsageCounts } from './usage-counts.ts'
import {
  countsInsert,
  type EarlierRuns,
  earlierRunsStatement,
  runInsert,
  type UsageRun,
} from './usage-tables.ts'

export interface UsageRecorder {
  /** Counts an answer to a key. */
  count(key: string, status: number, isDeprecated: boolean): void
  /** Writes the row of this run, then flushes again and again. Resolves after the first attempt, even if it failed. */
  start(): Promise<void>
  /** Writes what is not written. Resolves to whether everything counted so far is in the table. Never rejects. */
  flush(): Promise<boolean>
  /** Flushes a last time, within `edgeMsMax`. Call it when no request is under way. */
  close(): Promise<void>
}

export interface UsageRecorderOptions {
  flushMs: number
  /** After failures the pause between two flushes doubles up to this. */
  pauseMsMax: number
  /** How often the row of the run is written if there is nothing else to write. */
  aliveMs: number
  /** Time limit of one insert. */
  insertMsMax: number
  /** Time limit of the first flush, which the start waits for, and of the last one. */
  edgeMsMax: number
  /** Rows of one insert. */
  batchRowsMax: number
  /** Rows in memory: about 20 MB. */
  rowsMax: number
}

export interface UsageObserver {
  flushed(isWritten: boolean): void
  /** After each flush: rows in memory, and since the last flush: rows that were added to others, and lost requests. */
  state(state: { rows: number; summed: number; lost: number }): void
  /** Called for every flush that failed, for the log. */
  failed(error: unknown): void
}

export interface UsageRecorderDependencies {
  tables: Pick<Tables, 'rows' | 'insert'>
  databases: Databases
  /** Names this run. No other run may have the name. */
  process: string
  /** Whether no other query process can use these tables at the same time. */
  isOnlyProcess: boolean
  options: UsageRecorderOptions
  /** Unix milliseconds. */
  now: () => number
  sleep: Sleep
  observer: UsageObserver
}

export const defaultUsageRecorderOptions: UsageRecorderOptions = {
  flushMs: 5_000,
  pauseMsMax: 30_000,
  aliveMs: 20_000,
  insertMsMax: 10_000,
  edgeMsMax: 2_000,
  batchRowsMax: 5_000,
  rowsMax: 100_000,
}

/**
 * How long processes of a version that does not count may go on after the first one that counts, ms: a rolling deploy. A
 * key that was issued earlier is not known to be unused.
 */
const rollingDeployMsMax = 3_600_000

export function createUsageRecorder(dependencies: UsageRecorderDependencies): UsageRecorder {
  const { tables, databases, process, isOnlyProcess, options, now, sleep, observer } = dependencies
  const counts = createUsageCounts({ process, rowsMax: options.rowsMax, now })
  const stopping = new AbortController()
  const startedAt = now()
  let run: UsageRun | undefined
  let runWrittenAt = Number.NEGATIVE_INFINITY
  let version = 0
  let lostBefore = 0
  let following: Promise<void> = Promise.resolve()

  /** The run as the table should have it, before it is written for the first time. */
  async function newRun(signal: AbortSignal): Promise<UsageRun> {
    const [earlier] = await tables.rows<EarlierRuns>(earlierRunsStatement(databases), { signal })
    return {
      process,
      started_at: startedAt,
      counts_from: countsFrom(earlier ?? { runs: 0, counts_from: 0, keys: 1 }),
      is_only: isOnlyProcess,
      complete_until: startedAt,
      lost_at: 0,
      is_ended: false,
    }
  }

  function countsFrom(earlier: EarlierRuns): number {
    if (earlier.runs > 0) return earlier.counts_from
    // Without a key no process has answered any.
    const mayOthersAnswer = !isOnlyProcess && earlier.keys > 0
    return mayOthersAnswer ? startedAt + rollingDeployMsMax : startedAt
  }

  async function writeRun(changes: Partial<UsageRun>, signal: AbortSignal): Promise<void> {
    const next = { ...(run ?? (await newRun(signal))), ...changes }
    await tables.insert(runInsert(databases, next, ++version), { signal })
    run = next
    runWrittenAt = now()
  }

  async function writeAll(isEnded: boolean, signalOf: () => AbortSignal): Promise<void> {
    // The process must be known before its counts, so that a crash from now on is noticed.
    if (run === undefined) await writeRun({}, signalOf())
    const completeUntil = now()
    const { at: lostAt } = counts.lost()
    const rows = counts.unwritten()
    for (let first = 0; first < rows.length; first += options.batchRowsMax) {
      const batch = counts.send(rows.slice(first, first + options.batchRowsMax))
      await tables.insert(countsInsert(databases, batch, ++version), { signal: signalOf() })
      counts.confirm(batch)
    }
    if (rows.length > 0 || isEnded || now() - runWrittenAt >= options.aliveMs) {
      await writeRun({ complete_until: completeUntil, lost_at: lostAt, is_ended: isEnded }, signalOf())
    }
  }

  async function tryWriteAll(isEnded: boolean, signalOf: () => AbortSignal): Promise<boolean> {
    const summed = counts.sum()
    const error = await writeAll(isEnded, signalOf).then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    )
    // The last flush repeats what closing has cut off.
    const isCutOff = error !== undefined && !isEnded && stopping.signal.aborted
    if (!isCutOff) observer.flushed(error === undefined)
    if (error && !isCutOff) observer.failed(error.cause)
    const lost = counts.lost().requests
    observer.state({ rows: counts.size(), summed, lost: lost - lostBefore })
    lostBefore = lost
    return error === undefined
  }

  function flush(): Promise<boolean> {
    return tryWriteAll(false, () =>
      AbortSignal.any([stopping.signal, AbortSignal.timeout(options.insertMsMax)]),
    )
  }

  async function follow(): Promise<void> {
    let pauseMs = options.flushMs
    while (!stopping.signal.aborted) {
      await sleep(pauseMs, stopping.signal)
      if (stopping.signal.aborted) return
      const isWritten = await flush()
      pauseMs = isWritten ? options.flushMs : Math.min(2 * pauseMs, options.pauseMsMax)
    }
  }

  return {
    count: counts.count,
    flush,

    async start() {
      const deadline = AbortSignal.timeout(options.edgeMsMax)
      await tryWriteAll(false, () => deadline)
      following = follow()
    },

    async close() {
      stopping.abort()
      await following
      const deadline = AbortSignal.timeout(options.edgeMsMax)
      await tryWriteAll(true, () => deadline)
    },
  }
}
