/** The list bench's server: the query service's app, while campaigns change all the time. */
import { setTimeout as delay } from 'node:timers/promises'
import { statsStatement } from '../../../services/query/endpoints/stats.ts'
import type { QueryAppOptions } from '../../../services/query/options.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { benchInput, serveBench } from '../bench-process.ts'
import { startPlatformApp } from '../platform/app.ts'
import { type FoldedPlatform, foldPlatform, keepFolding } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { cpuSecondsOf } from '../process-usage.ts'
import { type Api, millisecondsOf } from './requests.ts'

export interface ListsServiceInput extends PlatformSize {
  directory: string
  changesPerSecond: number
}

export type ListsServiceReady = Api & FoldedPlatform

export interface ListsServiceRequest {
  /** How often to compute the statistics, as the service does ahead of requests. */
  statistics?: number
}

/** Since the last request for it. */
export interface ListsServiceAnswer {
  /** CPU time of this process, which includes the changes, ms. */
  cpuMs: number
  /** CPU time of ClickHouse while the statistics of this request were computed. */
  statisticsCpuSeconds: number
}

const loadedMsMax = 120_000
// Far from one another, because changes of a real platform are not neighbours in the table either. Coprime to round numbers.
const stride = 7_919
const statisticsMsMax = 30_000
const { directory, changesPerSecond, ...size } = benchInput<ListsServiceInput>()
const { tables, clickHouse } = await openOwnTables({ directory })
let statements = 0
const counted: Pick<Tables, 'rows'> = {
  rows(statement, options) {
    statements++
    return tables.rows(statement, options)
  },
}
// A thousand clients wait for ClickHouse. With its default limits the service would refuse most of them.
const raised: Partial<QueryAppOptions> = {
  waitingStatementsMax: 10_000,
  PLEDGEVIEW_QUERY_MS_MAX: 300_000,
  socketTimeoutMs: 700_000,
}
const folded = await foldPlatform(tables, defaultDatabases, size)
await keepFolding(tables, defaultDatabases)
const { apiUrl, headers } = await startPlatformApp(counted, defaultDatabases, raised)
const ready: ListsServiceReady = { apiUrl, headers, ...folded }
await indexLoaded()
keepChanging()

let cpuBefore = process.cpuUsage()
// The process is killed instead of closed: closing would first complete the last thousand requests.
serveBench({
  ready,
  async answer({ statistics = 0 }: ListsServiceRequest): Promise<ListsServiceAnswer> {
    const { user, system } = process.cpuUsage(cpuBefore)
    const cpuMs = (user + system) / 1000
    const before = cpuSecondsOf(clickHouse.pid)
    for (let computed = 0; computed < statistics; computed++)
      await tables.rows(statsStatement(defaultDatabases, statisticsMsMax, 1))
    const answer = { cpuMs, statisticsCpuSeconds: cpuSecondsOf(clickHouse.pid) - before }
    cpuBefore = process.cpuUsage()
    return answer
  },
})

/** Waits until a list that was never requested needs only one statement, for its rows. */
async function indexLoaded(): Promise<void> {
  const deadline = performance.now() + loadedMsMax
  for (let attempt = 0; performance.now() < deadline; attempt++) {
    const before = statements
    const since = new Date(Date.UTC(2001, 0) + attempt).toISOString()
    await millisecondsOf(ready, `/projects?limit=1&updated_since=${since}`)
    if (statements === before) return
    await delay(100)
  }
  throw new Error(`the index was not loaded within ${loadedMsMax} ms`)
}

/** Every second, changes campaigns in turn, as a fold would: in one step, with a new stamp. Each gets one more backer and some money. */
async function keepChanging(): Promise<void> {
  const { read } = defaultDatabases
  const startedMs = performance.now()
  for (let second = 1; ; second++) {
    await tables.run({
      query: `INSERT INTO ${read}.campaigns
SELECT * REPLACE (
    fold_id + 1 AS fold_id,
    backer_count + 1 AS backer_count,
    pledged_platform_amount + 25 AS pledged_platform_amount,
    now64(3, 'UTC') AS updated_at
)
FROM ${read}.campaigns FINAL
WHERE campaign_id IN (
    SELECT concat('cmp_', leftPad(toString(({from:UInt64} + number) * {stride:UInt64} % {campaigns:UInt64}), 7, '0'))
    FROM numbers({count:UInt64})
)
SETTINGS async_insert = 0, optimize_move_to_prewhere_if_final = 1`,
      query_params: {
        from: (second - 1) * changesPerSecond,
        count: changesPerSecond,
        stride,
        campaigns: size.campaigns,
      },
    })
    await delay(Math.max(0, startedMs + second * 1_000 - performance.now()))
  }
}
