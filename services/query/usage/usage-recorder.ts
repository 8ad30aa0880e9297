/**
 * Records how often each API key is used, and its latest requests: in memory, and every few seconds in the tables.
 *
 * Promises:
 * - A request never waits for it, and no failure of it reaches a request.
 * - A retry, a restart and a late insert count nothing twice (usage-counts.ts).
 * - A crash loses what was counted since the last flush, and an outage of ClickHouse what was counted until the minute before its end.
 */

import type { Runtime } from '../../runtime/runtime.ts'
import type { Databases, TableInsert, Tables } from '../../tables/port.ts'
import { encodeRows } from '../../tables/row-binary.ts'
import type { OnKeyAnswered } from '../http/request-log.ts'
import { createLatestRequests } from './latest-requests.ts'
import { createUsageCounts, type UsageBatch, type UsageRow } from './usage-counts.ts'

export interface UsageRecorder {
  /** Counts an answer to a key, and keeps the request for a while. */
  count: OnKeyAnswered
  /** Flushes again and again. */
  start(): void
  /** Writes what is not written. Resolves to whether everything counted so far is in the table. Never rejects. */
  flush(): Promise<boolean>
  /** Flushes a last time, within `edgeMsMax`. Call it when no request is under way. */
  close(): Promise<void>
}

export const defaultUsageRecorderOptions = {
  flushMs: 5_000,
  /** After failures the pause between two flushes doubles up to this. */
  pauseMsMax: 30_000,
  /** Time limit of one insert. */
  insertMsMax: 10_000,
  /** Time limit of the last flush. */
  edgeMsMax: 2_000,
  /** Rows of one insert. */
  batchRowsMax: 5_000,
}

// A flush that fails again and again is logged once in this time.
const logPauseMs = 60_000

/** `process` names this run. No other run may have the name. */
export function createUsageRecorder(
  tables: Pick<Tables, 'insert'>,
  databases: Databases,
  process: string,
  options: typeof defaultUsageRecorderOptions,
  { now, monotonicMs, sleep, logger, metrics }: Omit<Runtime, 'random'>,
): UsageRecorder {
  const counts = createUsageCounts({ process, now })
  const latest = createLatestRequests(databases, now)
  const stopping = new AbortController()
  let version = 0
  let lostBefore = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  let following: Promise<void> = Promise.resolve()

  async function writeAll(signalOf: () => AbortSignal): Promise<void> {
    const rows = counts.unwritten()
    for (let first = 0; first < rows.length; first += options.batchRowsMax) {
      const batch = batchOf(rows.slice(first, first + options.batchRowsMax))
      await tables.insert(countsInsert(databases, batch, ++version), { signal: signalOf() })
      counts.confirm(batch)
    }
    await latest.write(rows => tables.insert(rows, { signal: signalOf() }))
  }

  async function tryWriteAll(isLast: boolean, signalOf: () => AbortSignal): Promise<boolean> {
    const error = await writeAll(signalOf).then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    )
    // The last flush repeats what closing has cut off.
    const isCutOff = error !== undefined && !isLast && stopping.signal.aborted
    if (!isCutOff) metrics.usageFlushes.inc({ outcome: error === undefined ? 'written' : 'failed' })
    if (error && !isCutOff && monotonicMs() - loggedAt >= logPauseMs) {
      loggedAt = monotonicMs()
      const cause = String(error.cause)
      logger.warn({ error: cause }, 'the usage of keys could not be written')
    }
    metrics.usageLostRequests.inc(counts.lost() - lostBefore)
    lostBefore = counts.lost()
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
    count(key, status, isDeprecated, request, elapsedMs = 0) {
      const nth = counts.count(key, status, isDeprecated)
      if (request) latest.add(key, request, nth, elapsedMs)
    },

    flush,

    start() {
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

/** The rows as they are now. */
function batchOf(rows: readonly UsageRow[]): UsageBatch {
  return { rows, requests: rows.map(({ requests }) => requests) }
}

const minuteMs = 60_000
const time = "DateTime64(3, 'UTC')"

const countColumns = [
  { name: 'api_key', type: 'String' },
  { name: 'minute', type: time },
  { name: 'process', type: 'LowCardinality(String)' },
  { name: 'version', type: 'UInt64' },
  { name: 'ok', type: 'UInt32' },
  { name: 'not_modified', type: 'UInt32' },
  { name: 'unauthorized', type: 'UInt32' },
  { name: 'too_many', type: 'UInt32' },
  { name: 'other', type: 'UInt32' },
  { name: 'deprecated', type: 'UInt32' },
]

/** `version`: above that of every earlier insert of the process. */
function countsInsert({ base }: Databases, { rows }: UsageBatch, version: number): TableInsert {
  return {
    table: `${base}.api_key_usage`,
    columns: countColumns,
    rows: encodeRows(
      countColumns,
      rows.map(row => [
        row.key,
        row.minute * minuteMs,
        row.process,
        version,
        row.ok,
        row.not_modified,
        row.unauthorized,
        row.too_many,
        row.other,
        row.deprecated,
      ]),
    ),
  }
}
