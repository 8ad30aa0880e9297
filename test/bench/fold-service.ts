/**
 * The server of the fold bench: one campaign with very many pledges, among a few others. Each request adds some pledges as a
 * projector would, and folds them.
 */
import { readFileSync } from 'node:fs'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { nameDatabases } from '../../services/tables/migrate.ts'
import { openOwnTables } from '../support/clickhouse.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { campaignIdOf } from './platform.ts'
import { foldPlatform, mergesEnded, openPlatformFoldWorker, secondsOf } from './platform-fold.ts'

export interface FoldInput {
  directory: string
  pledges: number
}

export interface FoldRequest {
  /** How many pledges are new. */
  added: number
}

export interface FoldAnswer {
  foldMs: number
  statements: number
  /** How many parts the ledger of pledges has now. */
  parts: number
}

const { directory, pledges } = benchInput<FoldInput>()
const { tables, close } = await openOwnTables({ directory })
const { ledger } = defaultDatabases
const platform = { campaigns: 1_000, pledges: 10_000 }
const campaign = campaignIdOf(platform.campaigns / 2)
const sql = nameDatabases(
  readFileSync(new URL('fold-pledges.sql', import.meta.url), 'utf8'),
  defaultDatabases,
)
let made = 0
let batches = 0

await foldPlatform(tables, defaultDatabases, platform)
await addPledges(pledges)
await tables.run({ query: `OPTIMIZE TABLE ${ledger}.pledge_ledger FINAL` })
await mergesEnded(tables)
const foldWorker = openPlatformFoldWorker(tables, defaultDatabases)
await foldWorker.acquireLeadership()
serveBench({ ready: {}, answer: fold, close })

async function fold({ added }: FoldRequest): Promise<FoldAnswer> {
  await addPledges(added)
  await logBatch()
  let statements = 0
  const seconds = await secondsOf(async () => {
    statements = (await foldWorker.fold())?.statements ?? 0
  })
  const [found] = await tables.rows<{ parts: number }>({
    query: `SELECT count() AS parts FROM system.parts WHERE active AND database = '${ledger}' AND table = 'pledge_ledger'`,
  })
  return { foldMs: seconds * 1_000, statements, parts: found?.parts ?? 0 }
}

async function addPledges(count: number): Promise<void> {
  await tables.run({ query: sql, query_params: { campaign, pledges, first: made, count } })
  made += count
}

async function logBatch(): Promise<void> {
  batches++
  await tables.run({
    query: `INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
      SELECT 'fold-bench', {batch:UInt64}, [], 1, 0, 0, [{campaign:String}], now64(3, 'UTC') SETTINGS async_insert = 0`,
    query_params: { batch: batches, campaign },
  })
}
