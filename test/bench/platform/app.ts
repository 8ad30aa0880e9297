/** The query service's app for a bench, with a key that has no practical rate limit. */
import { pino } from 'pino'
import { hashSecret } from '../../../services/api-keys/credentials.ts'
import { createQueryApp } from '../../../services/query/app.ts'
import { createCache } from '../../../services/query/cache/cache.ts'
import { responses } from '../../../services/query/cache/response-cache.ts'
import { appOptionsOf, type QueryAppOptions } from '../../../services/query/options.ts'
import { createMemoryRateLimiter } from '../../../services/query/rate-limit/rate-limiter.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'

const key = 'pv_live_bench000000000000000000'
const secret = 'bench'
const pepper = 'bench'
const requestsMax = 100_000_000
// One key and one address stand for a thousand clients here, so they must not wait for turns, and need as many connections.
const manyAtOnce = {
  uncachedMax: 100_000,
  uncachedPerKeyMax: 100_000,
  PLEDGEVIEW_CONNECTIONS_PER_ADDRESS_MAX: 10_000,
  strangersPerAddressMax: 10_000,
  strangersMax: 10_000,
}

export interface PlatformApp {
  apiUrl: string
  /** The headers that authenticate a request. */
  headers: Record<string, string>
  close(): Promise<void>
}

/** Starts the app with the service's defaults and in-memory caches, on a free port. */
export async function startPlatformApp(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  options: Partial<QueryAppOptions>,
): Promise<PlatformApp> {
  const now = Date.now
  const secretHash = hashSecret(pepper, secret)
  const limiter = () =>
    createMemoryRateLimiter({ limit: requestsMax, windowMs: 60_000 }, { bucketsMax: 10, now })
  const app = createQueryApp(
    {
      tables,
      databases,
      keyRing: {
        lookup: name => (name === key ? { key: name, secretHash, scopes: ['read:public'] } : undefined),
      },
      limiters: { keys: limiter(), addresses: limiter() },
      cache: createCache(responses, { bytesMax: readConfig({}).PLEDGEVIEW_CACHE_BYTES_MAX, now }),
      options: { ...appOptionsOf(readConfig({}), pepper), ...manyAtOnce, ...options },
      keepsAhead: true,
    },
    createRuntime(pino({ level: 'silent' })),
  )
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    apiUrl: `${url}/api/v1`,
    headers: { 'x-api-key': key, 'x-api-secret': secret },
    close: () => app.close(),
  }
}
