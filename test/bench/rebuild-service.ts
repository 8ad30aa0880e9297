/**
 * The rebuild bench's server: an embedded model with the default settings of `npm start`, the query service's app over its
 * tables, and a rebuild on request. After a rebuild everything has to be as it was before.
 */
import { pino } from 'pino'
import { type RebuildResult, runRebuild } from '../../services/generations/rebuild.ts'
import type { Phase } from '../../services/generations/rebuild-log.ts'
import { dropPrevious } from '../../services/generations/rebuilds.ts'
import { openDataDirectory } from '../../services/local/data-directory.ts'
import { openEmbeddedModel } from '../../services/local/model.ts'
import { openJournalHistory } from '../../services/log/local/history.ts'
import { readConfig } from '../../services/runtime/config.ts'
import { createMetrics } from '../../services/runtime/ops/metrics.ts'
import { sleep } from '../../services/runtime/sleep.ts'
import { wholeRequest } from '../support/rebuild-request.ts'
import { benchInput, serveBench } from './bench-process.ts'
import { startPlatformApp } from './platform-app.ts'

export interface RebuildServiceInput {
  directory: string
}

export interface RebuildServiceReady {
  apiUrl: string
  headers: Record<string, string>
  /** Of this process and of ClickHouse. */
  pids: number[]
  /** The size of the model's tables on disk. */
  tablesBytes: number
}

/** `drop`: drops the previous tables, which would block the next rebuild. */
export interface RebuildOrder {
  order: 'rebuild' | 'drop'
}

export interface PhaseRun {
  phase: Phase
  seconds: number
}

export interface RebuildRun {
  phases: PhaseRun[]
  seconds: number
  records: number
  /** The number of public campaigns, before and after. */
  campaigns: number
}

// The longest time for the list index to load, and for ClickHouse to become idle.
const settleMs = 5_000

const config = readConfig({})
const files = openDataDirectory(benchInput<RebuildServiceInput>().directory)
const model = await openEmbeddedModel({
  directory: files,
  config,
  metrics: createMetrics(),
  logger: pino({ level: 'silent' }),
})
const { tables, databases } = model
await model.whenDrained()
const app = await startPlatformApp(tables, databases, {})
const history = await openJournalHistory(files.journal)
let runs = 0

await sleep(settleMs)
const ready: RebuildServiceReady = {
  apiUrl: app.apiUrl,
  headers: app.headers,
  pids: [process.pid, model.clickHouse.pid()],
  tablesBytes: await tablesBytes(),
}
serveBench({
  ready,
  answer: async ({ order }: RebuildOrder): Promise<RebuildRun | Record<string, never>> => {
    if (order === 'rebuild') return rebuild()
    await dropPrevious({ tables, databases })
    return {}
  },
  async close() {
    await app.close()
    await history.close()
    await model.close()
  },
})

/** Throws if the rebuilt tables differ from the live ones, in content or in stamps. */
async function rebuild(): Promise<RebuildRun> {
  const before = await readStamps()
  const clock = createPhaseClock()
  const startedMs = performance.now()
  const result = await runRebuild(
    {
      tables,
      databases,
      history,
      config,
      hashBacker: model.hashBacker,
      run: `rebuild-${++runs}`,
      isAlone: true,
      logger: pino({ level: 'silent' }),
      onProgress: ({ phase }) => clock.enter(phase),
      now: Date.now,
      monotonicMs: () => performance.now(),
      random: Math.random,
      sleep,
    },
    wholeRequest,
    new AbortController().signal,
  )
  const seconds = (performance.now() - startedMs) / 1000
  assertSame(result, before, await readStamps())
  return {
    phases: clock.phases(),
    seconds,
    records: result.detail.records,
    campaigns: before.campaigns,
  }
}

interface Stamps {
  campaigns: number
  digest: string
}

async function readStamps(): Promise<Stamps> {
  const [row] = await tables.rows<Stamps>({
    query: `SELECT count() AS campaigns, toString(sum(cityHash64(campaign_id, updated_at))) AS digest
            FROM ${databases.views}.campaigns`,
  })
  if (!row || row.campaigns === 0) throw new Error('there are no campaigns')
  return row
}

function assertSame({ detail }: RebuildResult, before: Stamps, after: Stamps): void {
  const { same, added, removed, different, inMotion } = detail.differences ?? {}
  const isSame =
    same === before.campaigns && added === 0 && removed === 0 && different === 0 && inMotion === 0
  if (!isSame)
    throw new Error(`the rebuild differs from the live model: ${JSON.stringify(detail.differences)}`)
  if (before.digest !== after.digest || before.campaigns !== after.campaigns) {
    throw new Error('the rebuild has changed the stamps of unchanged campaigns')
  }
  if (detail.rejects > 0) throw new Error(`${detail.rejects} records were rejected`)
}

/** Detects the phases from the progress of the rebuild, and measures each of them. */
function createPhaseClock() {
  const entered: { phase: Phase; atMs: number }[] = []
  return {
    enter(phase: Phase): void {
      if (entered.at(-1)?.phase !== phase) entered.push({ phase, atMs: performance.now() })
    },
    /** All but the last phase, which is the end. */
    phases: (): PhaseRun[] =>
      entered.slice(0, -1).map(({ phase, atMs }, place) => ({
        phase,
        seconds: ((entered[place + 1]?.atMs ?? atMs) - atMs) / 1000,
      })),
  }
}

async function tablesBytes(): Promise<number> {
  const [row] = await tables.rows<{ bytes: number }>({
    query: 'SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE active AND database = {model:String}',
    query_params: { model: databases.ledger },
  })
  return row?.bytes ?? 0
}
