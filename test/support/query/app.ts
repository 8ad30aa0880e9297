/** Starts the query service's app on a free port, with a clock that the test advances and keys that it creates. */

import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { type Logger, pino } from 'pino'
import { readScope } from '../../../contracts/api/conventions.ts'
import {
  type Credentials,
  generateApiKey,
  generateSecret,
  hashSecret,
} from '../../../services/api-keys/credentials.ts'
import { type AppRuntime, createQueryApp, type QueryAppParts } from '../../../services/query/app.ts'
import type { ApiKey } from '../../../services/query/auth/key-ring.ts'
import { createCache } from '../../../services/query/cache/cache.ts'
import { responses } from '../../../services/query/cache/response-cache.ts'
import { appOptionsOf, type QueryAppOptions } from '../../../services/query/options.ts'
import { createMemoryRateLimiter, type RateLimiter } from '../../../services/query/rate-limit/rate-limiter.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createRuntime } from '../../../services/runtime/runtime.ts'
import { generationOf } from '../../../services/tables/generation-log.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'

export const pepper = 'a pepper of the tests'

export type TestClock = ReturnType<typeof testClock>

/** A clock that stands still in 2026 until the test advances it. */
export function testClock(start = Date.parse('2026-03-01T12:00:00.250Z')) {
  let time = start
  return {
    now: () => time,
    advance(ms: number): void {
      time += ms
    },
  }
}

export interface TestAppSettings {
  tables: Pick<Tables, 'rows'>
  databases?: Databases
  clock?: TestClock
  /** Requests per minute of a key, and of an address. */
  keyLimit?: number
  addressLimit?: number
  /** Whether requests may have direct answers. Default: yes. */
  isDirect?: boolean
  options?: Partial<QueryAppOptions>
  /** Receives the log lines. */
  log?: string[]
  overrides?: Partial<QueryAppParts>
  runtime?: Partial<AppRuntime>
}

export type TestApp = Awaited<ReturnType<typeof startTestApp>>

/** Credentials in the two-header form. */
export function keyHeaders({ key, secret }: Credentials): Record<string, string> {
  return { 'X-API-Key': key, 'X-API-Secret': secret }
}

export async function startTestApp(settings: TestAppSettings) {
  const { tables, databases = generationOf({ base: 'query_model', views: 'query_views' }, 1) } = settings
  const clock = settings.clock ?? testClock()
  // The clock of the limiters is steady, and has another beginning than the system's.
  const startedAt = clock.now()
  const limiterNow = () => clock.now() - startedAt
  const keys = new Map<string, ApiKey>()
  const counted = { key: 0, address: 0 }
  function limiterOf(bucket: keyof typeof counted, limit: number): RateLimiter {
    const limiter = createMemoryRateLimiter(
      { limit, windowMs: 60_000 },
      { bucketsMax: 1000, now: limiterNow },
    )
    const hitNow = (name: string) => {
      const decision = limiter.hitNow(name)
      if (decision.allowed) counted[bucket]++
      return decision
    }
    return { settings: limiter.settings, hit: hitNow, ...(settings.isDirect !== false && { hitNow }) }
  }
  const parts = {
    tables,
    databases,
    keyRing: { lookup: (key: string) => keys.get(key) },
    limiters: {
      keys: limiterOf('key', settings.keyLimit ?? 120),
      addresses: limiterOf('address', settings.addressLimit ?? 120),
    },
    cache: createCache(responses, { bytesMax: 16 * 1024 * 1024, now: clock.now }),
    // No list index by default, because a test cannot see when it is loaded.
    options: {
      ...appOptionsOf(readConfig({}), pepper),
      PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX: 0,
      ...settings.options,
    },
    ...settings.overrides,
  }
  const runtime = { ...createRuntime(logTo(settings.log ?? [])), now: clock.now, ...settings.runtime }
  const app = createQueryApp(parts, runtime)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    clock,
    /** Creates an active key. */
    issue(scopes: readonly string[] = [readScope]): Credentials {
      const credentials = { key: generateApiKey(randomBytes), secret: generateSecret(randomBytes) }
      const { key, secret } = credentials
      keys.set(key, { key, secretHash: hashSecret(pepper, secret), scopes })
      return credentials
    },
    revoke: (key: string) => void keys.delete(key),
    /** Sends a GET with the credentials in two headers, and these further headers. */
    get: (path: string, credentials?: Credentials, headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
        headers: { ...(credentials && keyHeaders(credentials)), ...headers },
      }),
    /** How many requests have been admitted, by the bucket that they count against. */
    counted: () => ({ ...counted }),
    /** The number of open connections. */
    connections: (): Promise<number> => promisify(app.server.getConnections).call(app.server),
    close: (): Promise<void> => app.close(),
  }
}

function logTo(lines: string[]): Logger {
  return pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
}
