/** The query service's own app for a bench: one key that may ask for anything any number of times. */
import { pino } from 'pino'
import { createQueryApp } from '../../services/query/app.ts'
import { defaultQueryAppOptions, type QueryAppOptions } from '../../services/query/options.ts'
import { createMemoryRateLimiter } from '../../services/query/rate-limiter-memory.ts'
import { createMemoryResponseCache } from '../../services/query/response-cache-memory.ts'
import { readConfig } from '../../services/shared/config.ts'
import { hashSecret } from '../../services/shared/credentials.ts'
import type { Databases, Tables } from '../../services/shared/tables/port.ts'

const key = 'pv_live_bench000000000000000000'
const secret = 'bench'
const pepper = 'bench'
const requestsMax = 100_000_000

export interface PlatformApp {
  apiUrl: string
  /** What a request needs to be let in. */
  headers: Record<string, string>
  close(): Promise<void>
}

/** Starts the app with the service's defaults and caches in memory, on a port of its own. */
export async function startPlatformApp(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  options: Partial<QueryAppOptions>,
): Promise<PlatformApp> {
  const now = Date.now
  const apiKey = { key, secretHash: hashSecret(pepper, secret), scopes: ['read:public'] }
  const limiter = () =>
    createMemoryRateLimiter({ limit: requestsMax, windowMs: 60_000 }, { bucketsMax: 10, now })
  const app = createQueryApp({
    tables,
    databases,
    keyRing: { lookup: name => (name === key ? apiKey : undefined) },
    limiters: { keys: limiter(), addresses: limiter() },
    cache: createMemoryResponseCache({ bytesMax: readConfig({}).PLEDGEVIEW_CACHE_BYTES_MAX, now }),
    options: { ...defaultQueryAppOptions, pepper, ...options },
    now,
    logger: pino({ level: 'silent' }),
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    apiUrl: `${url}/api/v1`,
    headers: { 'x-api-key': key, 'x-api-secret': secret },
    close: () => app.close(),
  }
}
