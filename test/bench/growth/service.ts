/**
 * The server of the growth bench: a folded platform of some size, the query service's app over it, and any number of API keys on
 * request.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { createKeyRing, defaultKeyRingOptions } from '../../../services/query/auth/key-ring.ts'
import { createListFollower } from '../../../services/query/lists/list-follower.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { benchInput, createCpuMeter, serveBench } from '../bench-process.ts'
import { startPlatformApp } from '../platform/app.ts'
import { foldPlatform, openPlatformFoldWorker, secondsOf } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { cpuSecondsOf } from '../process-usage.ts'
import { type GrowthBatches, measureBatches } from './batches.ts'
import { heldBytes } from './held-bytes.ts'

export interface GrowthInput extends PlatformSize {
  directory: string
}

export interface GrowthReady {
  apiUrl: string
  headers: Record<string, string>
  foldSeconds: number
  /** Of the pledge ledger, in ClickHouse. */
  ledgerBytes: number
}

/**
 * `keys`: adds keys up to this number, and measures them. `batches`: makes the batch log so long, and measures what reads it. `index`:
 * loads a list index of its own. `cpu`: reads the CPU time since the last request for it.
 */
export type GrowthOrder =
  | { order: 'keys'; keys: number }
  | { order: 'batches'; batches: number }
  | { order: 'index' }
  | { order: 'cpu' }

export interface GrowthIndex {
  bytes: number
  /** Of the event loop, to load it, ms. */
  cpuMs: number
}

export interface GrowthKeys {
  foldMs: number
  /** How long a new query process takes to load them. */
  loadMs: number
}

export interface GrowthCpu {
  /** Of this process and ClickHouse's, ms. */
  cpuMs: number
}

const indexMsMax = 60_000
const { directory, ...size } = benchInput<GrowthInput>()
const { tables, clickHouse, close } = await openOwnTables({ directory })
const { foldSeconds } = await foldPlatform(tables, defaultDatabases, size)
// Requests for statistics have no parameters to vary, so their cache entries expire at once. Many clients wait at the same time.
const app = await startPlatformApp(tables, defaultDatabases, {
  PLEDGEVIEW_STATS_CACHE_MS: 1,
  waitingStatementsMax: 10_000,
  PLEDGEVIEW_QUERY_MS_MAX: 300_000,
  socketTimeoutMs: 700_000,
})
const foldWorker = openPlatformFoldWorker(tables, defaultDatabases)
await foldWorker.acquireLeadership()
let batches = 0
let cpuMsBefore = cpuMsNow()

const ready: GrowthReady = {
  apiUrl: app.apiUrl,
  headers: app.headers,
  foldSeconds,
  ledgerBytes: await bytesOf('pledge_ledger'),
}
serveBench({
  ready,
  answer,
  async close() {
    await app.close()
    await close()
  },
})

async function answer(order: GrowthOrder): Promise<GrowthKeys | GrowthBatches | GrowthIndex | GrowthCpu> {
  switch (order.order) {
    case 'keys':
      return measureKeys(order.keys)
    case 'batches':
      return measureBatches({ tables, databases: defaultDatabases, foldWorker }, order.batches)
    case 'index':
      return measureIndex()
    case 'cpu':
      return cpuSinceLast()
  }
}

async function bytesOf(table: string): Promise<number> {
  const [row] = await tables.rows<{ bytes: string }>({
    query: `SELECT toString(sum(bytes_on_disk)) AS bytes FROM system.parts
            WHERE active AND database = {model:String} AND table = {table:String}`,
    query_params: { model: defaultDatabases.ledger, table },
  })
  return Number(row?.bytes ?? 0)
}

/** Like that of a query process. */
async function measureIndex(): Promise<GrowthIndex> {
  const bytesBefore = await heldBytes()
  const statementMsMax = readConfig({}).PLEDGEVIEW_QUERY_MS_MAX
  const failures: unknown[] = []
  const follower = createListFollower(
    tables,
    defaultDatabases,
    { statementMsMax, campaignsMax: 2 * size.campaigns, freshMs: 0 },
    error => failures.push(error),
    { monotonicMs: () => performance.now() },
  )
  const cpu = createCpuMeter()
  const deadline = performance.now() + indexMsMax
  for (;;) {
    // The folds move the watermark on, as those of a projector do.
    await foldWorker.fold()
    const followed = await follower.current()
    if (followed) {
      const cpuMs = cpu()
      const bytes = (await heldBytes()) - bytesBefore
      if (followed.index.size !== size.campaigns)
        throw new Error(`the index has ${followed.index.size} campaigns`)
      return { bytes, cpuMs }
    }
    if (failures.length > 0 || performance.now() > deadline) {
      throw new Error(`the index was not loaded within ${indexMsMax} ms: ${failures[0] ?? 'no error'}`)
    }
    await delay(20)
  }
}

function cpuSinceLast(): GrowthCpu {
  const before = cpuMsBefore
  cpuMsBefore = cpuMsNow()
  return { cpuMs: cpuMsBefore - before }
}

function cpuMsNow(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + 1000 * cpuSecondsOf(clickHouse.pid)
}

async function measureKeys(keys: number): Promise<GrowthKeys> {
  const { base, ledger } = defaultDatabases
  await tables.run({
    query: `INSERT INTO ${base}.api_key_ledger
              (api_key, version, is_unrevoked, account_id, integration_name, secret_hash, scopes, issued_at)
            SELECT concat('pv_live_', leftPad(toString(number), 24, '0')), 1, true, concat('a', toString(intDiv(number, 2))),
              'bench', lower(hex(SHA256(toString(number)))), ['read:public'], now64(3, 'UTC')
            FROM numbers({keys:UInt64}) SETTINGS async_insert = 0`,
    query_params: { keys },
  })
  await tables.run({
    query: `INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
            SELECT 'bench-keys', {sequence:UInt64}, [], {keys:UInt64}, 0, {keys:UInt64}, [], now64(3, 'UTC')
            SETTINGS async_insert = 0`,
    query_params: { keys, sequence: ++batches },
  })
  const foldMs = 1000 * (await secondsOf(async () => void (await foldWorker.fold())))
  const failures: unknown[] = []
  const ring = createKeyRing(defaultKeyRingOptions, {
    tables,
    databases: defaultDatabases,
    monotonicMs: () => performance.now(),
    sleep,
    onError: error => failures.push(error),
  })
  const loadMs = 1000 * (await secondsOf(() => ring.start()))
  await ring.close()
  if (failures.length > 0 || !ring.lookup(`pv_live_${'0'.repeat(24)}`)) {
    throw new Error(`the keys were not loaded: ${failures[0]}`)
  }
  return { foldMs, loadMs }
}
