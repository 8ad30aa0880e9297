/** Rebuilds on Kafka and a ClickHouse server or cluster: opens what a command needs for them, and checks the configuration. */
import type { Logger } from 'pino'
import {
  databasesOf,
  readerSettings,
  registryOf,
  required,
  serverSettings,
  shardsOf,
} from '../distributed.ts'
import { openKafkaHistory } from '../log/kafka/history.ts'
import type { History } from '../log/port.ts'
import { backerHasher } from '../projector/ingest/backer-hash.ts'
import type { Config } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { openTables } from '../tables/clickhouse/clickhouse.ts'
import { holdTablesIdentity } from '../tables/schema/identity.ts'
import { checkMigrated } from '../tables/schema/migrate.ts'
import { RebuildRefused } from './begin.ts'
import { hasReplicas, type RebuildCluster, type RebuildTables } from './context.ts'
import { createRebuilds, type Rebuilds } from './rebuilds.ts'

/**
 * Runs the work with the rebuilds, and closes what it opened. Kafka is only contacted if the work needs it.
 * Throws `ConfigError`, or an error if the tables are not migrated.
 */
export async function withDistributedRebuilds<T>(
  config: Config,
  { logger }: { logger: Logger },
  work: (rebuilds: Rebuilds, place: RebuildTables) => Promise<T>,
): Promise<T> {
  required(config, ['PLEDGEVIEW_KAFKA_BROKERS', 'PLEDGEVIEW_CLICKHOUSE_URL'])
  const tables = openTables(serverSettings(config))
  const databases = databasesOf(config)
  const opened = await shardsOf(config, databases).catch(async error => {
    await tables.close()
    throw error
  })
  try {
    await databases.follow(tables)
    for (const shard of opened?.shards ?? [{ tables, databases }]) {
      await checkMigrated(shard.tables, shard.databases)
    }
    const name = config.PLEDGEVIEW_CLICKHOUSE_CLUSTER
    const cluster = opened && name ? { name, shards: opened.shards } : undefined
    const place = { tables, databases, cluster }
    return await work(
      createRebuilds({
        ...{ ...place, config, logger, isAlone: false },
        withHistory: read => withKafkaHistory(config, read),
        decoding: () => decodingOf(config, place),
      }),
      place,
    )
  } finally {
    await opened?.close()
    await tables.close()
  }
}

async function decodingOf(config: Config, place: RebuildTables) {
  const { tables, databases, cluster } = place
  if (cluster) await refuseReplicas(place, cluster)
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, ['PLEDGEVIEW_BACKER_KEY'])
  // Under another key, every backer would get another hash and would be counted again.
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  const hashBacker = backerHasher(backerKey)
  return { hashBacker, schemaRegistry: registryOf(config) }
}

async function withKafkaHistory<T>(config: Config, work: (history: History) => Promise<T>): Promise<T> {
  const history = await openKafkaHistory(readerSettings(config), { logger: createLogger('error') })
  try {
    return await work(history)
  } finally {
    await history.close()
  }
}

async function refuseReplicas(place: Pick<RebuildTables, 'tables'>, { name }: RebuildCluster): Promise<void> {
  if (!(await hasReplicas(place, name))) return
  throw new RebuildRefused(
    `a shard of ${name} has several replicas, and it cannot be known when a statement has ended on all of them: fill another cluster from the log ` +
      '(deploy/grow.md, "Another number of shards")',
  )
}
