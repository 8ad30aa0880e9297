/**
 * One run of the shards bench, as a separate process: a projector on a cluster of real servers until a whole history is folded, and
 * then some reads of the whole. What it returns is CPU time: the shards share this machine, so time says little.
 */
import { pino } from 'pino'
import { openJournalReader } from '../../services/log/local/journal.ts'
import { createProjectorService } from '../../services/projector/service.ts'
import { readConfig } from '../../services/runtime/config.ts'
import { createMetrics } from '../../services/runtime/ops/metrics.ts'
import { defaultDatabases } from '../../services/tables/generations.ts'
import { holdTablesIdentity } from '../../services/tables/identity.ts'
import { hashBacker } from '../support/model-tables.ts'
import { startShards } from '../support/shards.ts'
import { benchInput, createCpuMeter, serveBench } from './bench-process.ts'
import { cpuSecondsOf } from './process-usage.ts'

export interface ShardsRunInput {
  /** A journal that this run may note its positions in. */
  journal: string
  shards: number
}

export interface ShardsRunResult {
  records: number
  /** CPU time of the projector's main thread, and of all servers, s. */
  projectorSeconds: number
  serversSeconds: number
  /** CPU time of all servers for one read, ms. */
  pageMs: number
  totalsMs: number
}

const reads = 20
const drainedLookMs = 50
const pageIds = 20
const { views } = defaultDatabases

const { journal, shards: count } = benchInput<ShardsRunInput>()
serveBench({ ready: await run() })

async function run(): Promise<ShardsRunResult> {
  const shards = await startShards(count)
  const reader = await openJournalReader(journal, { consumer: `shards-${count}` })
  const stopping = new AbortController()
  try {
    const { tables, databases } = shards
    await holdTablesIdentity(tables, databases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
    const projector = createProjectorService({
      ...{ reader, tables, databases, shards: shards.shards, hashBacker },
      config: readConfig({}),
      run: 'bench',
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: Math.random,
    })
    const projectorMs = createCpuMeter()
    const before = serversSeconds()
    const running = projector.run(stopping.signal)
    let isDrained = false
    while (!isDrained) {
      // Rejects with what ended the projector.
      await Promise.race([running, new Promise(resolve => setTimeout(resolve, drainedLookMs))])
      isDrained = await projector.isDrained()
    }
    const result = {
      records: projector.health().records,
      projectorSeconds: projectorMs() / 1000,
      serversSeconds: serversSeconds() - before,
    }
    stopping.abort()
    await running
    const ids = await tables.rows<{ id: string }>({
      query: `SELECT campaign_id AS id FROM ${views}.campaigns ORDER BY cityHash64(campaign_id, 1) LIMIT ${pageIds}`,
    })
    const page = `SELECT * FROM ${databases.read}.campaign_pages WHERE campaign_id IN (${ids.map(({ id }) => `'${id}'`).join()})`
    return {
      ...result,
      pageMs: await costOf(page),
      totalsMs: await costOf(`SELECT * FROM ${views}.platform_totals`),
    }
  } finally {
    await reader.close()
    await shards.stop()
  }

  async function costOf(query: string): Promise<number> {
    await shards.tables.rows({ query })
    const before = serversSeconds()
    for (let read = 0; read < reads; read++) await shards.tables.rows({ query })
    return ((serversSeconds() - before) * 1000) / reads
  }

  function serversSeconds(): number {
    return shards.servers.reduce((sum, { pid }) => sum + cpuSecondsOf(pid), 0)
  }
}
