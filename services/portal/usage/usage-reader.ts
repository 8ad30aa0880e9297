/**
 * Reads how often keys were used, from the tables that the query processes write (services/query/usage).
 *
 * A count is here some seconds after its answer. What a killed process had not written is not counted.
 */
import { readSql } from '../../tables/read-sql.ts'
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
  /** The last 30 UTC days, oldest first, days without requests included. `day`: `2026-11-22`. */
  days: (UsageCounts & { day: string })[]
}

/** By whole key. Every given key has an entry. */
export type UsageOf = (keys: readonly { key: string }[]) => Promise<Map<string, KeyUsage>>

/** How many UTC days `KeyUsage.days` has, today included. */
const usageDays = 30

const dayMs = 86_400_000
// As long as the table keeps them (contracts/tables/0007-usage.sql).
const keptMs = 90 * dayMs
const readMsMax = 12_000

const keyUsageSql = readSql('key-usage', import.meta.url)

interface DayRow extends UsageCounts {
  api_key: string
  day: string
  last_used: number
}

/** Rejects with `TablesError` if ClickHouse does not answer in time. */
export function createUsageReader(place: Place, now: () => number): UsageOf {
  return async keys => {
    if (keys.length === 0) return new Map()
    const query_params = { keys: keys.map(({ key }) => key), from: now() - keptMs }
    const rows = await readRows<DayRow>(place, keyUsageSql, readMsMax, query_params)
    const rowsOf = Map.groupBy(rows, row => row.api_key)
    const days = lastDays(now())
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

/** The last UTC days as `2026-11-22`, oldest first. */
function lastDays(now: number): string[] {
  return Array.from({ length: usageDays }, (_, index) =>
    new Date(now - (usageDays - 1 - index) * dayMs).toISOString().slice(0, 10),
  )
}
