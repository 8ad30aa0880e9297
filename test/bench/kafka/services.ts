/**
 * The services for the Kafka benches: a broker, ClickHouse, Redis and optionally a schema registry, which only the bench uses,
 * and processes of the program on them.
 *
 * No process and no file outlives the bench: the services keep their data in the workspace.
 */
import type { Admin } from 'kafkajs'
import { pino } from 'pino'
import { createKafka } from '../../../services/log/kafka/client.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { type Deployment, deploy } from '../../support/deployment/deployment.ts'
import {
  type LocalServiceOptions,
  localServices,
  startLocalServices,
} from '../../support/deployment/local-services.ts'
import type { Workspace } from '../workspace.ts'

export interface KafkaServices {
  admin: Admin
  /** For the bench itself. */
  tables: Tables
  /** Process id of ClickHouse. */
  clickHousePid: number
  /** A deployment whose topics and databases are named after `name`, unless settings say otherwise. */
  deploy(name: string, settings?: Readonly<Record<string, string>>): Promise<Deployment>
}

export const logger = pino({ level: 'silent' })

/** Starts the services, runs the work on them and stops them. Throws with the reason if they are not available. */
export async function withKafkaServices<T>(
  workspace: Workspace,
  options: LocalServiceOptions,
  work: (services: KafkaServices) => Promise<T>,
): Promise<T> {
  process.env.TMPDIR = workspace.directory('services')
  const requirement = await localServices(options)
  if (!requirement.isMet) throw new Error(requirement.reason)
  const local = await startLocalServices(options)
  const { addresses } = local
  const tables = openTables(settingsFor(local.clickHouse))
  const kafka = { brokers: [addresses.kafka], clientId: 'pledgeview-bench', topicPrefix: '' }
  const admin = createKafka(kafka, logger).admin()
  const deployments: Deployment[] = []
  try {
    await admin.connect()
    return await work({
      admin,
      tables,
      clickHousePid: local.clickHouse.pid,
      async deploy(name, settings = {}) {
        const deployment = await deploy(addresses, {
          PLEDGEVIEW_KAFKA_TOPIC_PREFIX: `${name}.`,
          PLEDGEVIEW_KAFKA_GROUP: name,
          PLEDGEVIEW_DATABASE: name,
          PLEDGEVIEW_VIEWS_DATABASE: `${name}_views`,
          ...settings,
        })
        deployments.push(deployment)
        return deployment
      },
    })
  } finally {
    await Promise.all(deployments.map(deployment => deployment.stop()))
    await admin.disconnect()
    await tables.close()
    await local.stop()
  }
}
