/**
 * The server of the cold bench: a platform of the size that the targets name. It is inserted directly into the ledger, folded
 * by the projector's fold worker, and served by the query service's app.
 */

import { statsStatement } from '../../../services/query/endpoints/stats.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { peakMemoryBytes } from '../machine.ts'
import { startPlatformApp } from '../platform/app.ts'
import { type FoldedPlatform, foldPlatform, keepFolding } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { cpuSecondsOf, memoryOf } from '../process-usage.ts'

export interface ColdInput extends PlatformSize {
  directory: string
}

export interface ColdReady extends FoldedPlatform {
  apiUrl: string
  headers: Record<string, string>
  /** A service that keeps the statistics ahead of requests. */
  aheadUrl: string
}

export interface ColdRequest {
  /** How often to compute the statistics, as the service does ahead of requests. */
  statistics: number
}

export interface ColdAnswer {
  peakBytes: number
  /** CPU time of ClickHouse since its start. */
  cpuSeconds: number
}

const statisticsMsMax = 30_000

const { directory, ...size } = benchInput<ColdInput>()
const { tables, clickHouse, close } = await openOwnTables({ directory })
const folded = await foldPlatform(tables, defaultDatabases, size)
await keepFolding(tables, defaultDatabases)
// Requests for statistics have no parameters to vary, so their cache entries expire at once.
const app = await startPlatformApp(tables, defaultDatabases, { PLEDGEVIEW_STATS_CACHE_MS: 1 })
const ahead = await startPlatformApp(tables, defaultDatabases, {}, { keepsAhead: true })

const ready: ColdReady = { apiUrl: app.apiUrl, headers: app.headers, aheadUrl: ahead.apiUrl, ...folded }
serveBench({
  ready,
  async answer({ statistics }: ColdRequest): Promise<ColdAnswer> {
    for (let computed = 0; computed < statistics; computed++)
      await tables.rows(statsStatement(defaultDatabases, statisticsMsMax, 1))
    return {
      peakBytes: peakMemoryBytes() + memoryOf(clickHouse.pid).peakBytes,
      cpuSeconds: cpuSecondsOf(clickHouse.pid),
    }
  },
  async close() {
    await Promise.all([app.close(), ahead.close()])
    await close()
  },
})
