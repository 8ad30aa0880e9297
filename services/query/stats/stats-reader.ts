/** Computes the response with the statistics of the platform. */
import { statsBodySchema } from '../../../contracts/api/schemas.ts'
import type { Databases, Tables } from '../../shared/tables/port.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import { entryOf } from '../cache/response-cache.ts'
import type { QueryAppOptions } from '../options.ts'
import { presentStats } from '../views/present.ts'
import type { StatsRow } from '../views/rows.ts'
import { statsStatement } from '../views/statements.ts'

export interface ComputedStats {
  entry: CacheEntry
  /** Pledges that count. */
  totalPledges: number
}

export interface StatsReaderDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  options: Pick<QueryAppOptions, 'platformCurrency' | 'statsCacheMs'>
  /** Time limit of the statement. */
  msMax: number
  /** Default: as many as ClickHouse takes. */
  threadsMax?: number
  /** Unix milliseconds. */
  now: () => number
}

/** Creates a reader. Each call computes a new response. The signal ends the wait for it. */
export function createStatsReader({
  tables,
  databases,
  options,
  msMax,
  threadsMax,
  now,
}: StatsReaderDependencies): (signal?: AbortSignal) => Promise<ComputedStats> {
  const { platformCurrency, statsCacheMs } = options
  return async signal => {
    const createdAt = now()
    const statement = statsStatement(databases, msMax, threadsMax)
    const [row] = await tables.rows<StatsRow>(statement, signal && { signal })
    if (row === undefined) throw new Error('the statistics statement returned no row')
    const body = statsBodySchema.parse({ data: presentStats(row, platformCurrency) })
    const entry = entryOf(body, {
      asOf: null,
      snapshotId: null,
      link: null,
      createdAt,
      expiresAt: createdAt + statsCacheMs,
    })
    return { entry, totalPledges: row.total_pledges }
  }
}
