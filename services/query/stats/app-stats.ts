/** The statistics of an app: computed when they are asked for, or kept ahead while the app runs. */
import type { FastifyInstance } from 'fastify'
import type { Sleep } from '../../shared/sleep.ts'
import type { Tables } from '../../shared/tables/port.ts'
import type { QueryAppDependencies } from '../app.ts'
import type { CacheEntry } from '../cache/response-cache.ts'
import { whileOpen } from '../while-open.ts'
import { createStatsAhead } from './stats-ahead.ts'
import { createStatsReader } from './stats-reader.ts'

/** What it takes to keep the statistics ahead. */
export interface AheadOptions {
  sleep: Sleep
  /** 0 to 1. */
  random: () => number
}

// No request waits for this computation, so it may take as long as a statement may be silent. It uses one core.
const aheadMsMax = 30_000

/**
 * Returns what loads the statistics for a request. `tables`: those for requests, which limit the statements. With `ahead`, the
 * app keeps the statistics ahead from its start to its close.
 */
export function addStats(
  app: FastifyInstance,
  dependencies: QueryAppDependencies,
  tables: Pick<Tables, 'rows'>,
): () => Promise<CacheEntry> {
  const { cache, databases, options, now, logger, ahead } = dependencies
  const reading = { databases, options, now }
  const compute = createStatsReader({ ...reading, tables, msMax: options.statementMsMax })
  if (ahead === undefined) return async () => (await compute()).entry
  const msMax = Math.max(aheadMsMax, options.statementMsMax)
  const read = createStatsReader({ ...reading, tables: dependencies.tables, msMax, threadsMax: 1 })
  const stats = createStatsAhead({
    cache,
    compute,
    computeAhead: signal => read(AbortSignal.any([signal, AbortSignal.timeout(msMax)])),
    statsCacheMs: options.statsCacheMs,
    now,
    ...ahead,
    onError: error => logger.warn({ err: error }, 'the statistics could not be computed ahead'),
  })
  whileOpen(app, stats.run, stats.started)
  return stats.load
}
