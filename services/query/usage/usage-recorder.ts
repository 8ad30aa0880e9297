/**
 * Records how often each API key is used, and its latest requests: in memory, and every few seconds in the tables.
 *
 * Promises:
 * - A request never waits for it, and no failure of it reaches a request.
 * - A retry, a restart and a late insert count nothing twice (usage-counts.ts).
 * - A crash loses what was counted since the last flush, and an outage of ClickHouse what was counted until the minute before its end.
 * - An outage means one try every five seconds, of at most ten seconds each.
 */

import { formatListQuery, type ListParameters } from '../../../contracts/api/parameters.ts'
import { type Rounds, startRounds } from '../../runtime/async/rounds.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Databases, TableInsert, Tables } from '../../tables/port.ts'
import type { OnKeyAnswered } from '../http/request-log.ts'
import { createUsageCounts, minuteMs, type Unwritten } from './usage-counts.ts'

export type UsageRecorder = ReturnType<typeof createUsageRecorder>

const flushMs = 5_000
const flushMsMax = 10_000
const lastFlushMsMax = 2_000
// The latest requests of a key in one minute: as many as its limit admits.
const requestsPerMinuteMax = 120
const requestsMax = 5_000
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
  /** The latest requests, until they are written. An extra for people: what does not fit is left out. */
  const latest: (string | number)[][] = []
  let version = 0
  let rounds: Rounds | undefined

  async function write(signal: AbortSignal): Promise<void> {
    const unwritten = counts.unwritten()
    if (unwritten.length > 0) await tables.insert(countsInsert(databases, unwritten, ++version), { signal })
    counts.confirm(unwritten)
    // What fails waits on, and a repeated write changes nothing.
    const requests = latest.slice()
    if (requests.length > 0) await tables.insert(requestsInsert(databases, requests), { signal })
    latest.splice(0, requests.length)
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
      if (!request || nth > requestsPerMinuteMax || latest.length >= requestsMax) return
      const { id, route, parameters } = request
      latest.push([key, now(), id, shownPath(route, parameters), status, Math.round(elapsedMs)])
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

const countColumns = [
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
  return { table: `${base}.api_key_usage`, columns: countColumns, rows: encodeRows(countColumns, rows) }
}

/**
 * A row has the pattern of the route and parameters with fixed values. It has no address and no text as the client sent it, because
 * any of these may hold a secret in the wrong place.
 */
const requestColumns = [
  { name: 'api_key', type: 'String' },
  { name: 'at', type: "DateTime64(3, 'UTC')" },
  { name: 'request_id', type: 'String' },
  { name: 'path', type: 'LowCardinality(String)' },
  { name: 'status', type: 'UInt16' },
  { name: 'ms', type: 'UInt32' },
]

function requestsInsert({ base }: Databases, requests: (string | number)[][]): TableInsert {
  const rows = encodeRows(requestColumns, requests)
  return { table: `${base}.api_key_requests`, columns: requestColumns, rows }
}

/** `/projects?limit=2&category`: a category is the client's own text, as a slug is, so only its name is here. */
function shownPath(route: string, parameters: object | null): string {
  if (parameters === null || !('sort' in parameters)) return route
  const { category, ...rest } = parameters as ListParameters
  const query = [formatListQuery({ ...rest, category: null }), category === null ? '' : 'category']
  const text = query.filter(part => part !== '').join('&')
  return text === '' ? route : `${route}?${text}`
}
