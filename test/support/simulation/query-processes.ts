/** The query service's processes: the real app, called without a socket, on the simulation's ClickHouse and time. */
import { pino } from 'pino'
import { basePath, readScope } from '../../../contracts/api/conventions.ts'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { createQueryApp } from '../../../services/query/app.ts'
import { createCache } from '../../../services/query/cache/cache.ts'
import { responses } from '../../../services/query/cache/response-cache.ts'
import {
  snapshots as listSnapshots,
  type SnapshotCache,
} from '../../../services/query/lists/campaign-lists.ts'
import { appOptionsOf } from '../../../services/query/options.ts'
import { createMemoryRateLimiter } from '../../../services/query/rate-limit/rate-limiter.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { Safeguards } from './safeguards.ts'
import type { Scenario } from './scenario.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface QueryProcessesDependencies {
  tables: () => Pick<Tables, 'rows'>
  databases: Databases
  time: VirtualTime
  scenario: Scenario
  /** Whether lists are answered from the index in memory, if possible. */
  usesIndex: boolean
  safeguards: Safeguards
}

const cacheBytesMax = 16 * 1024 * 1024
const pepper = 'a pepper of the simulation'
const secret = 'a secret of the simulation'
const secretHash = hashSecret(pepper, secret)

/** The headers of any consumer. Each has its own key. */
export function headersOf(consumer: number): Record<string, string> {
  return { authorization: `Bearer pv_live_of_consumer_${consumer}:${secret}` }
}

export function startQueryProcesses(dependencies: QueryProcessesDependencies) {
  const { tables, databases, time, scenario, usesIndex, safeguards } = dependencies
  const { sharesCaches, listCacheMs, clockSkewsMs } = scenario
  const shared = sharesCaches ? createCaches(safeguards, time.now) : undefined
  let snapshots = 0

  function startQueryProcess(ownSkewMs: number) {
    // Processes that share caches agree on when an entry expires, because Redis decides it.
    const now = () => time.now() + (sharesCaches ? 0 : ownSkewMs)
    const start = () =>
      createQueryApp(
        {
          tables: tables(),
          databases,
          keyRing: { lookup: key => ({ key, secretHash, scopes: [readScope] }) },
          limiters: { keys: limiter(now), addresses: limiter(now) },
          ...(shared ?? createCaches(safeguards, now)),
          options: {
            ...appOptionsOf(readConfig({}), pepper),
            PLEDGEVIEW_CACHE_MS: listCacheMs,
            ...(!usesIndex && { PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX: 0 }),
          },
          newRequestId: () => 'request',
          newSnapshotId: () => `snapshot ${++snapshots}`,
        },
        { ...createRuntime(pino({ level: 'silent' })), now, monotonicMs: time.now },
      )
    let app = start()
    return {
      /** GET of a path below the base URL. */
      async get(path: string, headers: Record<string, string>): Promise<Response> {
        const answer = await app.inject({ url: basePath + path, headers })
        return new Response(answer.statusCode === 304 ? null : answer.payload, {
          status: answer.statusCode,
          headers: answer.headers as Record<string, string>,
        })
      },
      /** Loses its caches, as if the process was restarted. */
      loseCaches(): void {
        app = start()
      },
    }
  }
  return clockSkewsMs.map(startQueryProcess)
}

function limiter(now: () => number) {
  return createMemoryRateLimiter({ limit: 120, windowMs: 60_000 }, { bucketsMax: 100, now })
}

function createCaches({ snapshots: areKept }: Safeguards, now: () => number) {
  const snapshots = createCache(listSnapshots, { bytesMax: cacheBytesMax, now })
  return {
    cache: createCache(responses, { bytesMax: cacheBytesMax, now }),
    snapshots: areKept ? snapshots : moving(snapshots),
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
