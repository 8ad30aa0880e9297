/**
 * Runs the portal as a separate process, on Kafka, ClickHouse and Redis. Several processes share sessions and limits through
 * Redis, and accounts through the event log and ClickHouse.
 */
import { keyDirectory } from '../api-keys/api-keys.ts'
import { openKafkaWriter } from '../log/kafka/writer.ts'
import { oidcSettings, smtpMailer, startPortalService } from '../portal/service.ts'
import { portalStore } from '../portal/store/redis-store.ts'
import { closing } from '../runtime/async/closing.ts'
import { createMetrics } from '../runtime/ops/metrics.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import { holdTablesIdentity } from '../tables/schema/identity.ts'
import { type Process, serve } from './serve.ts'
import {
  databasesOf,
  kafkaSettings,
  patientAtStart,
  required,
  serverSettings,
  stateEncoderOf,
} from './settings.ts'

/** Serves until the signal aborts, then lets running requests finish for ten seconds. Throws if it cannot start. */
export async function runPortalProcess(given: Process): Promise<void> {
  const { config, logger } = given
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
  const provider = oidcSettings(config)
  if (config.PLEDGEVIEW_SMTP_URL === undefined && provider === undefined)
    logger.warn('no one can sign in: set PLEDGEVIEW_SMTP_URL or PLEDGEVIEW_OIDC_ISSUER')
  await closing(async open => {
    const metrics = createMetrics()
    const tables = open(openTables(serverSettings(config)))
    const databases = databasesOf(config)
    await holdTablesIdentity(patientAtStart(tables, given), databases, {
      PLEDGEVIEW_KEY_PEPPER: settings.PLEDGEVIEW_KEY_PEPPER,
      // With another one no account would be found.
      PLEDGEVIEW_PORTAL_KEY: settings.PLEDGEVIEW_PORTAL_KEY,
    })
    const encode = await stateEncoderOf(config)
    const writer = open(await openKafkaWriter(kafkaSettings(config), { logger }))
    const portal = open(
      await startPortalService({
        ...{ config, portalUrl, apiUrl: settings.PLEDGEVIEW_API_URL, tables, databases, logger },
        portalKey: settings.PLEDGEVIEW_PORTAL_KEY,
        hosts: [],
        store: portalStore(config, settings.PLEDGEVIEW_REDIS_URL, createRuntime(logger, metrics)),
        mailer: smtpMailer(config, metrics),
        keyAdmin: {
          directory: keyDirectory(tables, databases),
          ...{ writer, encode, pepper: settings.PLEDGEVIEW_KEY_PEPPER },
        },
      }),
    )
    await serve(open, given, {
      ...{ service: 'portal', app: portal.app, port: config.PLEDGEVIEW_PORTAL_PORT, tables, databases },
      ...{ metrics, readiness: portal.readiness },
      readyText: listensOn => `The portal ${portalUrl} is served on ${listensOn}`,
    })
  })
}
