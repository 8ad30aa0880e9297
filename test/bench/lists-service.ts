/**
 * The list bench's server: the query service's app twice over the same tables, with the list index and without, while
 * campaigns change all the time. Each is asked in its turn.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { QueryAppOptions } from '../../services/query/options.ts'
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { defaultDatabases, type Tables } from '../../services/shared/tables/port.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { createChanges } from './lists-changes.ts'
import { startPlatformApp } from './platform-app.ts'

export interface ListsServiceInput {
  directory: string
  campaigns: number
  changesPerSecond: number
}

export interface ListsServiceReady {
  index: Served
  sql: Served
}

export interface Served {
  apiUrl: string
  headers: Record<string, string>
}

/** Since it was asked last. */
export interface ListsServiceAnswer {
  /** Statements that either app has had run. */
  statements: number
  /** Processor time of the whole process, ClickHouse's and that of the changes included, ms. */
  cpuMs: number
  /** The longest that nothing else could run, ms. */
  heldMs: number
}

const loadedMsMax = 120_000
const { directory, campaigns, changesPerSecond } = benchInput<ListsServiceInput>()
const tables = openChdbTables(directory)
let statements = 0
const counted: Pick<Tables, 'rows'> = {
  rows(statement, options) {
    statements++
    return tables.rows(statement, options)
  },
}
// A thousand clients wait for what ClickHouse has to say, where the service would have refused most of them.
const raised: Partial<QueryAppOptions> = {
  waitingStatementsMax: 10_000,
  statementMsMax: 300_000,
  socketTimeoutMs: 700_000,
}
const index = await startPlatformApp(counted, defaultDatabases, raised)
const sql = await startPlatformApp(counted, defaultDatabases, { ...raised, indexCampaignsMax: 0 })
await indexLoaded()
keepChanging()

const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
let cpuBefore = process.cpuUsage()
const ready: ListsServiceReady = { index: servedBy(index), sql: servedBy(sql) }
// It has no end of its own: what the last thousand clients wait for would be worked off first.
serveBench({
  ready,
  async answer(): Promise<ListsServiceAnswer> {
    const { user, system } = process.cpuUsage(cpuBefore)
    const answer = { statements, cpuMs: (user + system) / 1000, heldMs: delays.max / 1e6 }
    cpuBefore = process.cpuUsage()
    statements = 0
    delays.reset()
    return answer
  },
})

function servedBy({ apiUrl, headers }: Served): Served {
  return { apiUrl, headers }
}

/** Until a list that nobody asked for before needs no statement but that for its rows. */
async function indexLoaded(): Promise<void> {
  const deadline = performance.now() + loadedMsMax
  for (let attempt = 0; performance.now() < deadline; attempt++) {
    const before = statements
    const path = `/projects?limit=1&updated_since=${new Date(Date.UTC(2001, 0) + attempt).toISOString()}`
    const response = await fetch(index.apiUrl + path, { headers: index.headers })
    await response.arrayBuffer()
    const isQuiet = statements - before === 0
    if (isQuiet) return
    await delay(100)
  }
  throw new Error(`the index was not loaded within ${loadedMsMax} ms`)
}

/** As many changes in one step every second as come in a second. */
async function keepChanging(): Promise<void> {
  const change = createChanges({ tables, databases: defaultDatabases, campaigns })
  const startedMs = performance.now()
  for (let second = 1; ; second++) {
    await change(changesPerSecond)
    await delay(Math.max(0, startedMs + second * 1_000 - performance.now()))
  }
}
