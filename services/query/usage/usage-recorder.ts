/**
 * Records how often each API key is used, and its latest requests: in memory, and every few seconds in the tables.
 *
 * Promises:
 * - A request never waits for it, and no failure of it reaches a request.
 * - A retry, a restart and a late insert count nothing twice (usage-counts.ts).
 * - A crash loses what was counted since the last flush, and an outage of ClickHouse what was counted until the minute before its end.
 * - An outage means one try every five seconds, of at most ten seconds each.
 */

import { type Rounds, startRounds } from '../../runtime/async/rounds.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Databases, TableInsert, Tables } from '../../tables/port.ts'
import type { OnKeyAnswered } from '../http/request-log.ts'
import { createLatestRequests } from './latest-requests.ts'
import { createUsageCounts, type UsageBatch, type UsageRow } from './usage-counts.ts'

export type UsageRecorder = ReturnType<typeof createUsageRecorder>

const flushMs = 5_000
const flushMsMax = 10_000
const lastFlushMsMax = 2_000
const { signal: unstopped } = new AbortController()

/** `process` names this run. No other run may have the name. `onError`: called for every flush that failed. */
export function createUsageRecorder(
  tables: Pick<Tables, 'insert'>,
  databases: Databases,
  process: string,
  onError: (error: unknown) => void,
  { now, sleep, metrics }: Pick<Runtime, 'now' | 'sleep' | 'metrics'>,
) {
  const counts = createUsageCounts({ process, now })
  const latest = createLatestRequests(databases, now)
  let version = 0
  let lostBefore = 0
  let rounds: Rounds | undefined

  async function write(signal: AbortSignal): Promise<void> {
    const batch = batchOf(counts.unwritten())
    if (batch.rows.length > 0) await tables.insert(countsInsert(databases, batch, ++version), { signal })
    counts.confirm(batch)
    await latest.write(rows => tables.insert(rows, { signal }))
  }

  /** A flush that `stopping` cuts off has not failed: the last one writes the same. */
  async function flush(stopping: AbortSignal, msMax = flushMsMax): Promise<boolean> {
    let isWritten = false
    try {
      await write(AbortSignal.any([stopping, AbortSignal.timeout(msMax)]))
      isWritten = true
    } catch (error) {
      if (stopping.aborted) return false
      onError(error)
    }
    metrics.usageFlushes.inc({ outcome: isWritten ? 'written' : 'failed' })
    metrics.usageLostRequests.inc(counts.lost() - lostBefore)
    lostBefore = counts.lost()
    return isWritten
  }

  return {
    /** Counts an answer to a key, and keeps the request for a while. */
    count(...[key, status, isDeprecated, request, elapsedMs = 0]: Parameters<OnKeyAnswered>): void {
      const nth = counts.count(key, status, isDeprecated)
      if (request) latest.add(key, request, nth, elapsedMs)
    },

    /** Writes what is not written. Resolves to whether everything counted so far is in the table. Never rejects. */
    flush: () => flush(unstopped),

    /** Flushes again and again. */
    start(): void {
      rounds = startRounds(flush, { pauseMs: flushMs, onError, sleep })
    },

    /** Flushes a last time, within two seconds. Call it when no request is under way. */
    async close(): Promise<void> {
      await rounds?.close()
      await flush(unstopped, lastFlushMsMax)
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
