/**
 * Runs the portal as a separate process, on Kafka, ClickHouse and Redis. Several processes share sessions and limits through
 * Redis, and accounts through the event log and ClickHouse.
 */
import type { Logger } from 'pino'
import { keyDirectory } from '../api-keys/api-keys.ts'
import { databasesOf, kafkaSettings, required, serverSettings, stateEncoderOf } from '../distributed.ts'
import { openKafkaWriter } from '../log/kafka/writer.ts'
import type { Config } from '../runtime/config.ts'
import { tablesCheck } from '../runtime/ops/checks.ts'
import { closeServer } from '../runtime/ops/close-server.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createOpsServer, opsHosts } from '../runtime/ops/ops-server.ts'
import { openTables } from '../tables/clickhouse.ts'
import { checkTablesIdentity } from '../tables/identity.ts'
import { readProjection, reportProjection } from '../tables/projector-stops.ts'
import { oidcSettings, smtpMailer, startPortalService } from './service.ts'
import { portalStore } from './store/redis-store.ts'

export interface ProcessDependencies {
  config: Config
  logger: Logger
  /** Ends the process cleanly. */
  signal: AbortSignal
  onReady: (urls: { portalUrl: string; listensOn: string; opsUrl: string }) => void
}

/** Serves until the signal aborts, then lets running requests finish. Throws if it cannot start. */
export async function runPortalProcess({
  config,
  logger,
  signal,
  onReady,
}: ProcessDependencies): Promise<void> {
  const settings = required(config, [
    'PLEDGEVIEW_KAFKA_BROKERS',
    'PLEDGEVIEW_CLICKHOUSE_URL',
    'PLEDGEVIEW_REDIS_URL',
    'PLEDGEVIEW_KEY_PEPPER',
    'PLEDGEVIEW_PORTAL_KEY',
    'PLEDGEVIEW_PORTAL_URL',
    'PLEDGEVIEW_API_URL',
  ])
  const portalUrl = settings.PLEDGEVIEW_PORTAL_URL
  if (config.PLEDGEVIEW_SMTP_URL === undefined && oidcSettings(config) === undefined)
    logger.warn('no one can sign in: set PLEDGEVIEW_SMTP_URL or PLEDGEVIEW_OIDC_ISSUER')
  const closers: (() => unknown)[] = []
  try {
    const tables = openTables(serverSettings(config))
    closers.push(() => tables.close())
    const databases = databasesOf(config)
    await checkTablesIdentity(tables, databases, { PLEDGEVIEW_KEY_PEPPER: settings.PLEDGEVIEW_KEY_PEPPER })
    const encode = await stateEncoderOf(config)
    const writer = await openKafkaWriter(kafkaSettings(config), { logger })
    closers.push(() => writer.close())
    const portal = await startPortalService({
      config,
      portalUrl,
      apiUrl: settings.PLEDGEVIEW_API_URL,
      portalKey: settings.PLEDGEVIEW_PORTAL_KEY,
      hosts: [],
      store: portalStore(config, settings.PLEDGEVIEW_REDIS_URL, logger),
      mailer: smtpMailer(config),
      keyAdmin: {
        directory: keyDirectory(tables, databases),
        writer,
        encode,
        pepper: settings.PLEDGEVIEW_KEY_PEPPER,
      },
      tables,
      databases,
      logger,
    })
    closers.push(() => portal.close())
    const metrics = createMetrics()
    const ops = createOpsServer({
      hosts: opsHosts(config),
      health: () => ({ process: { ok: true, detail: 'runs' } }),
      readiness: async () => ({ ...portal.readiness(), tables: await tablesCheck(tables) }),
      status: async () => ({ service: 'portal', stopped: (await readProjection(tables, databases)).stopped }),
      metrics,
      beforeScrape: () => reportProjection({ metrics, tables, databases }),
    })
    closers.push(() => closeServer(ops))
    const listensOn = await portal.app.listen({
      host: config.PLEDGEVIEW_HOST,
      port: config.PLEDGEVIEW_PORTAL_PORT,
    })
    const opsUrl = await ops.listen({ host: config.PLEDGEVIEW_OPS_HOST, port: config.PLEDGEVIEW_OPS_PORT })
    onReady({ portalUrl, listensOn, opsUrl })
    if (!signal.aborted)
      await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
  } finally {
    for (const closer of closers.reverse()) await closer()
  }
}
