/**
 * The cold bench's server: a platform of the size that the targets are about, put straight into the ledger, folded by
 * the projector's own folder, and served by the query service's own app.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { createFolder } from '../../services/projector/folder.ts'
import { sleep } from '../../services/projector/sleep.ts'
import { createQueryApp } from '../../services/query/app.ts'
import { defaultQueryAppOptions } from '../../services/query/options.ts'
import { createMemoryRateLimiter } from '../../services/query/rate-limiter-memory.ts'
import { createMemoryResponseCache } from '../../services/query/response-cache-memory.ts'
import { readConfig } from '../../services/shared/config.ts'
import { hashSecret } from '../../services/shared/credentials.ts'
import { openChdbTables } from '../../services/shared/tables/chdb.ts'
import { migrate } from '../../services/shared/tables/migrate.ts'
import { defaultDatabases, type Tables } from '../../services/shared/tables/port.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { peakMemoryBytes } from './machine.ts'
import { loadPlatform } from './platform.ts'

export interface ColdInput {
  directory: string
  campaigns: number
  pledges: number
}

export interface ColdReady {
  apiUrl: string
  headers: Record<string, string>
  loadSeconds: number
  foldSeconds: number
  foldStatements: number
}

export interface ColdAnswer {
  peakBytes: number
}

const { directory, campaigns, pledges } = benchInput<ColdInput>()
const databases = defaultDatabases
const config = readConfig({})
const mergeMsMax = 30_000
const key = 'pv_live_bench000000000000000000'
const secret = 'bench'
const pepper = 'bench'

const tables = openChdbTables(directory)
await migrate(tables, databases)
const loadSeconds = await secondsOf(() => loadPlatform(tables, databases, { campaigns, pledges }))
const folded = await fold()
await mergesEnded(tables)

const app = openApp()
const url = await app.listen({ host: '127.0.0.1', port: 0 })
const ready: ColdReady = {
  apiUrl: `${url}/api/v1`,
  headers: { 'x-api-key': key, 'x-api-secret': secret },
  loadSeconds,
  ...folded,
}
serveBench({
  ready,
  answer: async (): Promise<ColdAnswer> => ({ peakBytes: peakMemoryBytes() }),
  async close() {
    await app.close()
    await tables.close()
  },
})

/** The fold with the projector's defaults. */
async function fold(): Promise<{ foldSeconds: number; foldStatements: number }> {
  const folder = createFolder({
    tables,
    databases,
    holder: 'bench',
    settings: {
      horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
      settleMs: 0,
      platformDigits: 2,
      campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
    },
    monotonicMs: () => performance.now(),
    sleep,
    random: Math.random,
  })
  await folder.takeOver()
  let statements = 0
  const foldSeconds = await secondsOf(async () => {
    statements = (await folder.fold())?.statements ?? 0
  })
  return { foldSeconds, foldStatements: statements }
}

/** Waits until ClickHouse has merged what was loaded at once, as it would have been long ago; for a while at most. */
async function mergesEnded({ rows }: Tables): Promise<void> {
  const deadline = performance.now() + mergeMsMax
  while (performance.now() < deadline) {
    const [row] = await rows<{ running: number }>({ query: 'SELECT count() AS running FROM system.merges' })
    if (row?.running === 0) return
    await delay(200)
  }
}

function openApp() {
  const now = Date.now
  const apiKey = { key, secretHash: hashSecret(pepper, secret), scopes: ['read:public'] }
  const limiter = () =>
    createMemoryRateLimiter({ limit: 1_000_000, windowMs: 60_000 }, { bucketsMax: 10, now })
  return createQueryApp({
    tables,
    databases,
    keyRing: { lookup: name => (name === key ? apiKey : undefined) },
    limiters: { keys: limiter(), addresses: limiter() },
    cache: createMemoryResponseCache({ bytesMax: config.PLEDGEVIEW_CACHE_BYTES_MAX, now }),
    // Statistics have no parameters that could be varied, so they expire at once.
    options: { ...defaultQueryAppOptions, pepper, statsCacheMs: 1 },
    now,
    logger: pino({ level: 'silent' }),
  })
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return (performance.now() - startedMs) / 1000
}
