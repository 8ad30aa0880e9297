/**
 * Reads how often keys were used, and their latest requests, from the tables that the query processes write (services/query/usage).
 *
 * A count is here some seconds after its answer. What a killed process had not written is not counted.
 */
import { dayMs } from '../../runtime/runtime.ts'
import { readSql } from '../../tables/sql-text.ts'
import { type Place, readRows } from '../reading.ts'

/** Answers to a key by outcome. */
export interface UsageCounts {
  ok: number
  not_modified: number
  unauthorized: number
  too_many: number
  /** Every other status. */
  other: number
  /** Requests to a deprecated version, out of all of them. */
  deprecated: number
}

export interface KeyUsage {
  /** Right to a minute. Undefined: no counted use in the last 90 days. A request with a wrong secret does not use the key. */
  last_used: number | undefined
  /** The last 30 UTC days or 72 hours, oldest first, those without requests included. `day`: `2026-11-22` or `2026-11-22T14`. */
  days: (UsageCounts & { day: string })[]
}

export type Per = 'day' | 'hour'

export type UsageOf = ReturnType<typeof createUsageReader>
export type RequestsOf = ReturnType<typeof createRequestsReader>
type Keys = readonly { key: string }[]

/** A request that a key was answered. `path`: the pattern of the route, and some parameters. */
export interface KeyRequest {
  api_key: string
  answered_at: number
  request_id: string
  path: string
  status: number
  ms: number
}

export interface EndpointCount {
  endpoint: string
  status: number
  requests: number
  /** Nineteen of twenty took this long at most. */
  p95_ms: number
}

// `length`: of the moment in ISO 8601.
const spans = {
  day: { ms: dayMs, count: 30, length: 10, format: '%Y-%m-%d' },
  hour: { ms: dayMs / 24, count: 72, length: 13, format: '%Y-%m-%dT%H' },
} as const
/** As long as the table keeps requests (contracts/tables/0007-requests.sql). */
export const requestsKeptMs = 3 * dayMs
export const latestMax = 50
/** As long as the table keeps them (contracts/tables/0004-usage.sql). */
export const usageKeptMs = 90 * dayMs

const keyUsageSql = readSql('key-usage', import.meta.url)
const latestSql = readSql('latest-requests', import.meta.url)
const endpointsSql = readSql('requests-by-endpoint', import.meta.url)

interface DayRow extends UsageCounts {
  api_key: string
  day: string
  last_used: number
}

/**
 * By whole key. Every given key has an entry. By hour, the last use is that of the last 72 hours. Rejects with `TablesError` if ClickHouse
 * does not answer in time.
 */
export function createUsageReader(place: Place, now: () => number) {
  return async (keys: Keys, per: Per = 'day'): Promise<Map<string, KeyUsage>> => {
    if (keys.length === 0) return new Map()
    const days = lastDays(now(), per)
    const from = per === 'day' ? now() - usageKeptMs : Date.parse(`${days[0]}:00:00Z`)
    const query_params = { keys: keys.map(({ key }) => key), from, format: spans[per].format }
    const rows = await readRows<DayRow>(place, keyUsageSql, query_params)
    const rowsOf = Map.groupBy(rows, row => row.api_key)
    return new Map(keys.map(({ key }) => [key, keyUsage(rowsOf.get(key) ?? [], days)]))
  }
}

function keyUsage(rows: readonly DayRow[], days: readonly string[]): KeyUsage {
  const byDay = new Map(rows.map(row => [row.day, row]))
  const lastUsed = Math.max(0, ...rows.map(row => row.last_used))
  return { last_used: lastUsed > 0 ? lastUsed : undefined, days: days.map(day => dayOf(day, byDay.get(day))) }
}

function dayOf(day: string, row: DayRow | undefined): KeyUsage['days'][number] {
  const { ok = 0, not_modified = 0, unauthorized = 0, too_many = 0, other = 0, deprecated = 0 } = row ?? {}
  return { day, ok, not_modified, unauthorized, too_many, other, deprecated }
}

/** The last UTC days as `2026-11-22`, or hours as `2026-11-22T14`, oldest first. */
function lastDays(now: number, per: Per): string[] {
  const { ms, count, length } = spans[per]
  return Array.from({ length: count }, (_, index) =>
    new Date(now - (count - 1 - index) * ms).toISOString().slice(0, length),
  )
}

/** The latest requests of these keys whose id begins like this, and all kept ones by endpoint. Rejects as the reader of usage does. */
export function createRequestsReader(place: Place, now: () => number) {
  return async (keys: Keys, id: string) => {
    if (keys.length === 0) return { latest: [], endpoints: [] }
    const query_params = { keys: keys.map(({ key }) => key), from: now() - requestsKeptMs }
    const [latest, endpoints] = await Promise.all([
      readRows<KeyRequest>(place, latestSql, { ...query_params, id, most: latestMax }),
      readRows<EndpointCount>(place, endpointsSql, query_params),
    ])
    return { latest, endpoints }
  }
}
