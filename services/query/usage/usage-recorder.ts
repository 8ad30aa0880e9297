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
import { createUsageCounts, minuteMs, type Unwritten } from './usage-counts.ts'

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
  const counts = createUsageCounts(process, requests => metrics.usageLostRequests.inc(requests), now)
  const latest = createLatestRequests(databases, now)
  let version = 0
  let rounds: Rounds | undefined

  async function write(signal: AbortSignal): Promise<void> {
    const unwritten = counts.unwritten()
    if (unwritten.length > 0) await tables.insert(countsInsert(databases, unwritten, ++version), { signal })
    counts.confirm(unwritten)
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

const sums = ['ok', 'not_modified', 'unauthorized', 'too_many', 'other', 'deprecated'] as const

const columns = [
  { name: 'api_key', type: 'String' },
  { name: 'minute', type: "DateTime64(3, 'UTC')" },
  { name: 'process', type: 'LowCardinality(String)' },
  { name: 'version', type: 'UInt64' },
  ...sums.map(name => ({ name, type: 'UInt32' })),
]

/** `version`: above that of every earlier insert of the process. */
function countsInsert({ base }: Databases, unwritten: readonly Unwritten[], version: number): TableInsert {
  const rows = unwritten.map(({ row }) => [
    ...[row.key, row.minute * minuteMs, row.process, version],
    ...sums.map(name => row[name]),
  ])
  return { table: `${base}.api_key_usage`, columns, rows: encodeRows(columns, rows) }
}
