/**
 * Reads how often keys were used, from the tables that the query processes write (services/query/usage).
 *
 * A count is here some seconds after its answer. `never` means: the key was issued after counting began, no count can be
 * missing since then (sql/counted-since.sql), and there is none. Otherwise a key without counts is `unknown`, and
 * `counted_since` says from when on it was not used.
 */

import { nameDatabases } from '../../shared/tables/migrate.ts'
import type { Databases, Tables } from '../../shared/tables/port.ts'
import { readSql } from '../../shared/tables/read-sql.ts'
import type { KeyUsage, UsageCounts, UsageReader } from '../ports.ts'

export interface UsageReaderDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  /** Unix milliseconds. */
  now: () => number
}

/** How many UTC days `KeyUsage.days` has, today included. */
export const usageDays = 30

const dayMs = 86_400_000
// The table keeps 90 days (contracts/tables/0007-usage.sql). The first of them may be gone in part.
const keptMs = 89 * dayMs
// A living process writes its row every 20 seconds (services/query/usage/usage-recorder.ts).
const aliveMs = 60_000
const readMsMax = 12_000

const countedSinceSql = readSql('counted-since', import.meta.url)
const keyUsageSql = readSql('key-usage', import.meta.url)

interface DayRow extends UsageCounts {
  api_key: string
  day: string
  last_used: number
}

/** Rejects with `TablesError` if ClickHouse does not answer in time. */
export function createUsageReader({ tables, databases, now }: UsageReaderDependencies): UsageReader {
  async function countedSince(signal: AbortSignal): Promise<number | undefined> {
    const [row] = await tables.rows<{ runs: number; counted_since: number }>(
      {
        query: nameDatabases(countedSinceSql, databases),
        query_params: { alive_from: now() - aliveMs },
      },
      { signal },
    )
    return row && row.runs > 0 ? Math.max(row.counted_since, now() - keptMs) : undefined
  }

  return {
    async ofKeys(keys) {
      if (keys.length === 0) return new Map()
      const signal = AbortSignal.timeout(readMsMax)
      // In this order: the counts then have all that the runs say is complete.
      const since = await countedSince(signal)
      const rows = await tables.rows<DayRow>(
        {
          query: nameDatabases(keyUsageSql, databases),
          query_params: { keys: keys.map(({ key }) => key), from: now() - keptMs },
        },
        { signal },
      )
      const rowsOf = Map.groupBy(rows, row => row.api_key)
      const days = lastDays(now())
      return new Map(
        keys.map(key => [key.key, keyUsage(rowsOf.get(key.key) ?? [], days, key.issued_at_ms, since)]),
      )
    },
  }
}

function keyUsage(
  rows: readonly DayRow[],
  days: readonly string[],
  issuedAt: number,
  since: number | undefined,
): KeyUsage {
  const byDay = new Map(rows.map(row => [row.day, row]))
  const lastUsed = Math.max(0, ...rows.map(row => row.last_used))
  const unused = since !== undefined && issuedAt >= since ? 'never' : 'unknown'
  return {
    last_used: lastUsed > 0 ? lastUsed : unused,
    ...(since !== undefined && { counted_since: since }),
    days: days.map(day => dayOf(day, byDay.get(day))),
  }
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
