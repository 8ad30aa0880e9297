/** The query service's HTTP app. */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Databases, Tables } from '../shared/tables/port.ts'
import type { KeyRing } from './key-ring.ts'
import type { QueryAppOptions } from './options.ts'
import type { RateLimiters } from './rate-limiter.ts'
import type { ResponseCache } from './response-cache.ts'

export interface QueryAppDependencies {
  tables: Pick<Tables, 'rows'>
  databases: Databases
  keyRing: Pick<KeyRing, 'lookup'>
  limiters: RateLimiters
  cache: ResponseCache
  options: QueryAppOptions
  /** Unix milliseconds. */
  now: () => number
  logger: Logger
  /** Called once a request that reached the app has been answered, for the metrics. */
  onRequestDone?: (done: RequestDone) => void
}

export interface RequestDone {
  method: string
  /** The route's pattern, for example `/api/v1/projects/:slug`; `unknown` where none matched. */
  route: string
  status: number
  elapsedMs: number
}

/** The app, with its routes under `/api/v1`, not listening yet. */
export declare function createQueryApp(dependencies: QueryAppDependencies): FastifyInstance
