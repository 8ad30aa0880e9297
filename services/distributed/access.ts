/** What a command works with on Kafka and a ClickHouse server or cluster. Kafka is only contacted if the work needs it. */

import type { ModelAccess } from '../embedded/access.ts'
import { createRebuilds } from '../generations/rebuilds.ts'
import { openKafkaHistory } from '../log/kafka/history.ts'
import { type KafkaInspector, openKafkaInspector } from '../log/kafka/inspector.ts'
import { openKafkaWriter } from '../log/kafka/writer.ts'
import { readPositions } from '../projector/positions/positions.ts'
import { closing } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { inSession, openTables } from '../tables/clickhouse/clickhouse.ts'
import { checkTablesIdentity } from '../tables/schema/identity.ts'
import { checkMigrated } from '../tables/schema/migrate.ts'
import {
  clusterOf,
  databasesOf,
  hashBackerOf,
  kafkaSettings,
  readerSettings,
  registryOf,
  required,
  serverSettings,
  stateEncoderOf,
} from './settings.ts'

export interface ServersAccess extends ModelAccess {
  isEmbedded: false
  inspector(): Promise<KafkaInspector>
}

/** Runs the work, and closes what it opened. Throws `ConfigError`, which names every setting that is missing. */
export function withServers<T>(
  config: Config,
  needs: readonly (keyof Config)[],
  work: (access: ServersAccess) => Promise<T>,
): Promise<T> {
  required(config, [...needs, 'PLEDGEVIEW_CLICKHOUSE_URL'])
  const logger = createLogger('error')
  return closing(async open => {
    const tables = open(openTables(serverSettings(config)))
    const databases = databasesOf(config)
    const cluster = once(async () => {
      await databases.follow(tables)
      return open(await clusterOf(config, databases))
    })
    const shards = async () => (await cluster())?.shards ?? [{ tables, databases }]
    const positions = async (log: string) => (await readPositions(await shards(), log)).ofLog
    const inspector = once(async () =>
      open(await openKafkaInspector(readerSettings(config), { logger, positions })),
    )
    return work({
      ...{ isEmbedded: false, config, tables, databases, shards, inspector },
      session: () => open(openTables(inSession(serverSettings(config)))),
      writer: once(async () => open(await openKafkaWriter(kafkaSettings(config), { logger }))),
      encoder: () => stateEncoderOf(config),
      async secret(name) {
        const value = required(config, [name])[name]
        await checkTablesIdentity(tables, databases, { [name]: value })
        return value
      },
      lag: async () => (await (await inspector()).group()).lag,
      // Throws an error if the tables are not migrated.
      async rebuilds() {
        for (const shard of await shards()) await checkMigrated(shard.tables, shard.databases)
        return createRebuilds({
          ...{ tables, databases, cluster: await cluster(), config, isAlone: false },
          logger: createLogger('warn'),
          withHistory: work =>
            closing(async open => work(open(await openKafkaHistory(readerSettings(config), { logger })))),
          decoding: async () => ({
            hashBacker: await hashBackerOf(config, tables, databases),
            schemaRegistry: registryOf(config),
          }),
        })
      },
    })
  })
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opening: Promise<T> | undefined
  return () => (opening ??= open())
}
