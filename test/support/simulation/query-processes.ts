/** The query service's processes: the real app, called without a socket, on the simulation's ClickHouse and time. */
import { pino } from 'pino'
import { basePath, readScope } from '../../../contracts/api/conventions.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { createQueryApp } from '../../../services/query/app.ts'
import { createCache } from '../../../services/query/cache/cache.ts'
import { type ResponseCache, responses } from '../../../services/query/cache/response-cache.ts'
import {
  snapshots as listSnapshots,
  type SnapshotCache,
} from '../../../services/query/lists/campaign-lists.ts'
import { appOptionsOf } from '../../../services/query/options.ts'
import { createMemoryRateLimiter } from '../../../services/query/rate-limit/rate-limiter.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { queryProcesses, type Scenario } from './scenario.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface QueryProcess {
  /** GET of a path below the base URL. */
  get(path: string, headers: Record<string, string>): Promise<Response>
  /** Loses its caches, as if the process was restarted. */
  loseCaches(): void
}

export interface QueryProcessesDependencies {
  tables: () => Pick<Tables, 'rows'>
  databases: Databases
  time: VirtualTime
  scenario: Scenario
  settings: QuerySettings
}

export interface QuerySettings {
  /** Whether lists are answered from the index in memory, if possible. */
  usesIndex: boolean
  /** Whether the pages of a list come from one snapshot. */
  hasSnapshots: boolean
}

const cacheBytesMax = 16 * 1024 * 1024
const pepper = 'a pepper of the simulation'
const secret = 'a secret of the simulation'
const secretHash = hashSecret(pepper, secret)

/** The headers of any consumer. Each has its own key. */
export function headersOf(consumer: number): Record<string, string> {
  return { authorization: `Bearer pv_live_of_consumer_${consumer}:${secret}` }
}

export function startQueryProcesses(dependencies: QueryProcessesDependencies): QueryProcess[] {
  const { sharesCaches, listCacheMs } = dependencies.scenario
  const processes: QueryProcess[] = []
  const shared = sharesCaches ? createCaches(dependencies, dependencies.time.now) : undefined
  let snapshots = 0
  const newSnapshotId = () => `snapshot ${++snapshots}`
  for (let n = 0; n < queryProcesses; n++)
    processes.push(startQueryProcess({ ...dependencies, newSnapshotId }, n, listCacheMs, shared))
  return processes
}

interface Caches {
  cache: ResponseCache
  snapshots: SnapshotCache
}

function startQueryProcess(
  {
    tables,
    databases,
    time,
    scenario,
    settings,
    newSnapshotId,
  }: QueryProcessesDependencies & { newSnapshotId: () => string },
  number: number,
  listCacheMs: number,
  shared: Caches | undefined,
): QueryProcess {
  // Processes that share caches agree on when an entry expires, because Redis decides it.
  const skewMs = scenario.sharesCaches ? 0 : (scenario.clockSkewsMs[number] ?? 0)
  const now = () => time.now() + skewMs
  const start = () =>
    createQueryApp(
      {
        tables: tables(),
        databases,
        keyRing: { lookup: key => ({ key, secretHash, scopes: [readScope] }) },
        limiters: { keys: limiter(now), addresses: limiter(now) },
        ...(shared ?? createCaches({ settings }, now)),
        options: {
          ...appOptionsOf(readConfig({}), pepper),
          PLEDGEVIEW_CACHE_MS: listCacheMs,
          ...(!settings.usesIndex && { PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX: 0 }),
        },
        newRequestId: () => 'request',
        newSnapshotId,
      },
      { ...createRuntime(pino({ level: 'silent' })), now, monotonicMs: time.now },
    )
  let app = start()

  return {
    async get(path, headers) {
      const { statusCode, headers: answered, payload } = await app.inject({ url: basePath + path, headers })
      return new Response(statusCode === 304 ? null : payload, {
        status: statusCode,
        headers: answered as Record<string, string>,
      })
    },
    loseCaches() {
      app = start()
    },
  }
}

function limiter(now: () => number) {
  return createMemoryRateLimiter({ limit: 120, windowMs: 60_000 }, { bucketsMax: 100, now })
}

function createCaches({ settings }: { settings: QuerySettings }, now: () => number): Caches {
  const snapshots = createCache(listSnapshots, { bytesMax: cacheBytesMax, now })
  return {
    cache: createCache(responses, { bytesMax: cacheBytesMax, now }),
    snapshots: settings.hasSnapshots ? snapshots : moving(snapshots),
  }
}

/** Lists that are computed again for every page, but under one watermark and one id. */
function moving(kept: SnapshotCache): SnapshotCache {
  return {
    ...kept,
    async get(key, load) {
      const { ids: _, ...rest } = await kept.get(key, load)
      return { ...(await load()), ...rest }
    },
  }
}
