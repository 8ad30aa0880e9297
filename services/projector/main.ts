/** The projector as a process of its own, on Kafka and a ClickHouse server. Any number of them share the work. */
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { completeExchange } from '../rebuild/exchange.ts'
import { answered, lagCheck, loopCheck, projectorCheck, tablesCheck } from '../shared/checks.ts'
import { closeServer } from '../shared/close-server.ts'
import type { Config } from '../shared/config.ts'
import {
  databasesOf,
  readerSettings,
  registryOf,
  required,
  serverSettings,
  shardsOf,
} from '../shared/distributed.ts'
import { openKafkaReader } from '../shared/event-log/kafka/reader.ts'
import { createMetrics } from '../shared/metrics.ts'
import { createOpsServer } from '../shared/ops-server.ts'
import { openServerTables } from '../shared/tables/clickhouse-server.ts'
import { holdTablesIdentity } from '../shared/tables/identity.ts'
import { createProjectorService } from './service.ts'
import { statusOf } from './status.ts'

export interface ProcessDependencies {
  config: Config
  logger: Logger
  /** Ends the process cleanly. */
  signal: AbortSignal
  onReady: (urls: { opsUrl: string }) => void
}

/** Runs until the signal aborts, then hands its partitions over. Throws what the projector cannot go on from. */
export async function runProjectorProcess({
  config,
  logger,
  signal,
  onReady,
}: ProcessDependencies): Promise<void> {
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, [
    'PLEDGEVIEW_KAFKA_BROKERS',
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_BACKER_KEY',
  ])
  const metrics = createMetrics()
  const databases = databasesOf(config)
  const tables = openServerTables(serverSettings(config))
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  const shards = await shardsOf(config)
  const reader = await openKafkaReader(readerSettings(config), { logger })
  const projector = createProjectorService({
    reader,
    tables,
    databases,
    ...(shards && { shards: shards.shards }),
    config,
    backerKey,
    schemaRegistry: registryOf(config),
    run: `projector-${randomUUID()}`,
    // A fold of the folder before this one may run for half the horizon; it has ended after a whole one.
    settleMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    afterHold: () => completeExchange(tables, databases),
    metrics,
    logger,
    now: Date.now,
    monotonicMs: () => performance.now(),
    random: Math.random,
  })
  const ops = createOpsServer({
    health: () => ({ loop: loopCheck(projector.health()) }),
    readiness: async () => ({
      projector: projectorCheck(projector.health().failure),
      lag: await answered(async () => lagCheck(await projector.lag(), config.PLEDGEVIEW_LAG_RECORDS_MAX)),
      tables: await tablesCheck(tables),
    }),
    status: () => statusOf({ projector, tables, databases, ...shards }),
    metrics,
    beforeScrape: async () => {
      const lag = await projector.lag()
      // Of what it held before, another projector tells now.
      metrics.lag.reset()
      for (const { topic, partition, committed, end } of lag) {
        metrics.lag.set({ topic, partition }, end - committed)
      }
    },
  })
  try {
    onReady({
      opsUrl: await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT }),
    })
    await projector.run(signal)
  } finally {
    await closeServer(ops)
    await reader.close()
    await shards?.close()
    await tables.close()
  }
}
