/** The server of the growth bench: a folded platform of some size, and any number of API keys and batches on request. */
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createKeyRing, defaultKeyRingOptions } from '../../../services/query/auth/key-ring.ts'
import { statsStatement } from '../../../services/query/endpoints/stats.ts'
import { createListFollower } from '../../../services/query/lists/list-follower.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { benchInput, createCpuMeter, serveBench } from '../bench-process.ts'
import { foldPlatform, openPlatformFoldWorker, secondsOf } from '../platform/fold.ts'
import type { PlatformSize } from '../platform/platform.ts'
import { summarize } from '../samples.ts'
import { bytesOnDisk, type GrowthBatches, measureBatches } from './batches.ts'

export interface GrowthInput extends PlatformSize {
  directory: string
}

export interface GrowthReady {
  /** The statement behind `/stats`, the median. */
  statsMs: number
  /** Of the pledge ledger, in ClickHouse. */
  ledgerBytes: number
}

/**
 * `keys`: adds keys up to this number, and measures them. `batches`: makes the batch log so long, and measures what reads it. `index`:
 * loads a list index of its own.
 */
export type GrowthOrder =
  | { order: 'keys'; keys: number }
  | { order: 'batches'; batches: number }
  | { order: 'index' }

export interface GrowthIndex {
  bytes: number
  /** Of the event loop, to load it, ms. */
  cpuMs: number
}

export interface GrowthKeys {
  /** How long a new query process takes to load them. */
  loadMs: number
}

const indexMsMax = 60_000
const statsMsMax = 60_000
const statsAsked = 9
// Without a flag of the process, which is started as the service is.
setFlagsFromString('--expose-gc')
const collectGarbage: NonNullable<typeof globalThis.gc> = runInNewContext('gc')
const { directory, ...size } = benchInput<GrowthInput>()
const { tables, close } = await openOwnTables({ directory })
await foldPlatform(tables, defaultDatabases, size)
const foldWorker = openPlatformFoldWorker(tables, defaultDatabases)
await foldWorker.acquireLeadership()
let batches = 0

const ready: GrowthReady = {
  statsMs: await measureStats(),
  ledgerBytes: await bytesOnDisk(tables, defaultDatabases, 'pledge_ledger'),
}
serveBench({ ready, answer, close })

async function answer(order: GrowthOrder): Promise<GrowthKeys | GrowthBatches | GrowthIndex> {
  switch (order.order) {
    case 'keys':
      return measureKeys(order.keys)
    case 'batches':
      return measureBatches({ tables, databases: defaultDatabases, foldWorker }, order.batches)
    case 'index':
      return measureIndex()
  }
}

async function measureStats(): Promise<number> {
  const samples: number[] = []
  for (let asked = 0; asked < statsAsked; asked++)
    samples.push(1000 * (await secondsOf(() => tables.rows(statsStatement(defaultDatabases, statsMsMax)))))
  return summarize(samples).median
}

/** Heap and array buffers after a whole garbage collection. */
async function heldBytes(): Promise<number> {
  await collectGarbage({ type: 'major', execution: 'async' })
  await collectGarbage({ type: 'major', execution: 'async' })
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
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
  await foldWorker.fold()
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
  return { loadMs }
}
