/**
 * Runs the query service as a separate process, on a ClickHouse server. Several processes share limits and caches
 * through Redis.
 */

import type { Logger } from 'pino'
import { currentDatabases, required, serverSettings } from '../distributed.ts'
import type { Config } from '../runtime/config.ts'
import { keysCheck, tablesCheck } from '../runtime/ops/checks.ts'
import { closeServer } from '../runtime/ops/close-server.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { openTables } from '../tables/clickhouse.ts'
import { checkTablesIdentity, readTablesId } from '../tables/identity.ts'
import { readProjection, reportProjection } from '../tables/projector-stops.ts'
import { startQueryService } from './service.ts'
import { memoryState, redisState } from './shared-state.ts'

export interface ProcessSettings {
  config: Config
  logger: Logger
  /** Ends the process cleanly. */
  signal: AbortSignal
  onReady: (urls: { apiUrl: string; opsUrl: string }) => void
}

/** Serves until the signal aborts, then lets running requests finish. Throws if it cannot start. */
export async function runQueryProcess({ config, logger, signal, onReady }: ProcessSettings): Promise<void> {
  const { PLEDGEVIEW_KEY_PEPPER: keyPepper } = required(config, [
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_KEY_PEPPER',
  ])
  const metrics = createMetrics()
  const tables = openTables(serverSettings(config))
  const databases = await currentDatabases(config, tables)
  await checkTablesIdentity(tables, databases, {
    PLEDGEVIEW_KEY_PEPPER: keyPepper,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  const redisUrl = config.PLEDGEVIEW_REDIS_URL
  const tablesId = await readTablesId(tables, databases)
  const state = redisUrl
    ? redisState({ url: redisUrl, tablesId }, config, createRuntime(logger, metrics))
    : memoryState(config)
  const query = await startQueryService({
    tables,
    databases,
    config,
    keyPepper,
    state,
    metrics,
    logger,
  })
  const ops = createOpsServer({
    hosts: opsHosts(config),
    health: () => ({ process: { ok: true, detail: 'runs' } }),
    readiness: async () => ({
      keys: keysCheck(query.keyRing.isReady()),
      tables: await tablesCheck(tables),
      limits: state.check(),
    }),
    status: async () => ({
      service: 'query',
      keys: query.keyRing.isReady() ? 'up to date' : 'not read recently',
      stopped: (await readProjection(tables, databases)).stopped,
    }),
    metrics,
    beforeScrape: () => reportProjection({ metrics, tables, databases }),
  })
  try {
    const apiUrl = await query.app.listen({ host: config.PLEDGEVIEW_HOST, port: config.PLEDGEVIEW_PORT })
    const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT })
    onReady({ apiUrl: `${apiUrl}/api/v1`, opsUrl })
    if (!signal.aborted)
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
  } finally {
    await closeServer(ops)
    await query.close()
    await tables.close()
  }
}
