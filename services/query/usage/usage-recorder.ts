/**
 * Records how often each API key is used, and its latest requests: in memory, and every few seconds in the tables.
 *
 * Promises:
 * - A request never waits for it, and no failure of it reaches a request. A request whose key was counted before in the same minute
 *   allocates no row.
 * - However often and in whatever order rows are written, the table's sums end as the number of counted requests. A row carries the sum
 *   so far, and a higher version each time, so a repeated or late insert changes nothing. No two rows of different requests have
 *   one name: a minute is counted once, and if the clock steps back, the process counts on under another name.
 * - A crash loses what was counted since the last flush, and an outage of ClickHouse what was counted until the minute before its end:
 *   memory has this minute and the one before. A metric counts the requests that may be lost.
 * - An outage means one try every five seconds, of at most ten seconds each.
 */

import { formatListQuery, type ListParameters } from '../../../contracts/api/parameters.ts'
import { type Rounds, startRounds } from '../../runtime/async/rounds.ts'
import { invariant } from '../../runtime/ops/invariants.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { encodeRows } from '../../tables/clickhouse/row-binary.ts'
import type { Databases, TableInsert, Tables } from '../../tables/port.ts'
import type { OnKeyAnswered } from '../http/request-log.ts'

export type UsageRecorder = ReturnType<typeof createUsageRecorder>

const minuteMs = 60_000
const flushMs = 5_000
const flushMsMax = 10_000
const lastFlushMsMax = 2_000
const requestsMax = 5_000
const { signal: unstopped } = new AbortController()

const noRequests = { ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 }
const sums = Object.keys(noRequests) as (keyof typeof noRequests)[]
/** The sum of a status; that of all others is `other`. */
const sumOf = new Map<number, keyof typeof noRequests>([
  [200, 'ok'],
  [304, 'not_modified'],
  [401, 'unauthorized'],
  [429, 'too_many'],
])

/** A row without requests. `minute`: Unix minutes. `process`: the name under which the process counts it. */
const newRow = (key: string, minute: number, process: string) => ({
  ...{ key, minute, process, ...noRequests },
  /** All of them; `deprecated` is a part. */
  requests: 0,
  /** How many of the requests the table has for certain. */
  written: 0,
})

type UsageRow = ReturnType<typeof newRow>

/** `process` names this run. No other run may have the name. `onError`: called for every flush that failed. `keyLimit`: of a key, a minute. */
export function createUsageRecorder(
  tables: Pick<Tables, 'insert'>,
  databases: Databases,
  process: string,
  onError: (error: unknown) => void,
  { now, sleep, metrics, keyLimit }: Pick<Runtime, 'now' | 'sleep' | 'metrics'> & { keyLimit: number },
) {
  const minuteNow = () => Math.floor(now() / minuteMs)
  /** The rows of this minute and of the one before, by key. */
  let rows = new Map<string, UsageRow>()
  let before: typeof rows = new Map()
  let minute = minuteNow()
  let name = process
  let stepsBack = 0
  /** The latest requests, until they are written. An extra for people: what does not fit is left out. */
  const latest: (string | number)[][] = []
  let version = 0
  let rounds: Rounds | undefined

  function begin(next: number): void {
    for (const { requests, written } of before.values()) metrics.usageLostRequests.inc(requests - written)
    if (next < minute) name = `${process}.${++stepsBack}`
    minute = next
    before = rows
    rows = new Map()
  }

  /** The row of the key in this minute. */
  function rowOf(key: string): UsageRow {
    const present = minuteNow()
    if (present !== minute) begin(present)
    const row = rows.get(key) ?? newRow(key, minute, name)
    if (row.requests === 0) rows.set(key, row)
    return row
  }

  async function write(signal: AbortSignal): Promise<void> {
    // What each has at this moment: it goes on counting meanwhile.
    const unwritten = [...before.values(), ...rows.values()]
      .filter(({ requests, written }) => requests > written)
      .map(row => ({ row, requests: row.requests }))
    const counted = unwritten.map(({ row }) => row)
    if (counted.length > 0) await tables.insert(countsInsert(databases, counted, ++version), { signal })
    for (const { row, requests } of unwritten) {
      row.written = requests
      invariant('usage-written', row.written <= row.requests)
    }
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
      const row = rowOf(key)
      row.requests++
      row[sumOf.get(status) ?? 'other']++
      if (isDeprecated) row.deprecated++
      // The latest requests of a minute: as many as the key's limit admits.
      if (!request || row.requests > keyLimit || latest.length >= requestsMax) return
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

const countColumns = [
  { name: 'api_key', type: 'String' },
  { name: 'minute', type: "DateTime64(3, 'UTC')" },
  { name: 'process', type: 'LowCardinality(String)' },
  { name: 'version', type: 'UInt64' },
  ...sums.map(name => ({ name, type: 'UInt32' })),
]

/** `version`: above that of every earlier insert of the process. */
function countsInsert({ base }: Databases, unwritten: readonly UsageRow[], version: number): TableInsert {
  const rows = unwritten.map(row => [
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
