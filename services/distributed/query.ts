/**
 * Runs the query service as a separate process, on a ClickHouse server. Several processes share limits and caches
 * through Redis.
 */

import { checkDetails } from '../query/endpoints/project.ts'
import { startQueryService } from '../query/service.ts'
import { memoryState, redisState } from '../query/shared-state.ts'
import { closing } from '../runtime/async/closing.ts'
import { keysCheck } from '../runtime/ops/checks.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import { checkTablesIdentity, readTablesId } from '../tables/schema/identity.ts'
import { type Process, serve } from './serve.ts'
import { databasesOf, patientAtStart, required, serverSettings } from './settings.ts'

/** Serves until the signal aborts, then lets running requests finish for a second. Throws if it cannot start. */
export async function runQueryProcess(given: Process): Promise<void> {
  const { config, logger } = given
  const { PLEDGEVIEW_KEY_PEPPER: keyPepper } = required(config, [
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_KEY_PEPPER',
  ])
  await closing(async open => {
    const metrics = createMetrics()
    const tables = open(openTables(serverSettings(config)))
    const atStart = patientAtStart(tables, given)
    const databases = databasesOf(config)
    await databases.follow(atStart)
    await checkTablesIdentity(atStart, databases, {
      PLEDGEVIEW_KEY_PEPPER: keyPepper,
      PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
    })
    await checkDetails(atStart, databases, config.PLEDGEVIEW_QUERY_MS_MAX)
    const redisUrl = config.PLEDGEVIEW_REDIS_URL
    const tablesId = await readTablesId(atStart, databases)
    const state = redisUrl
      ? redisState({ url: redisUrl, tablesId }, config, createRuntime(logger, metrics))
      : memoryState(config)
    const query = open(
      await startQueryService({ tables, databases, config, keyPepper, state, metrics, logger }),
    )
    await serve(open, given, {
      ...{ service: 'query', app: query.app, port: config.PLEDGEVIEW_PORT, tables, databases, metrics },
      readiness: () => ({ keys: keysCheck(query.keyRing), limits: state.check() }),
      status: () => ({ keys: keysCheck(query.keyRing).detail }),
      readyText: url => `Pledgeview serves ${url}/api/v1`,
    })
  })
}
