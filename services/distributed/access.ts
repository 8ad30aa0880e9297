/** What a command works with on Kafka and a ClickHouse server or cluster. Kafka is only contacted if the work needs it. */

import type { ModelAccess } from '../embedded/access.ts'
import { type KafkaInspector, openKafkaInspector } from '../log/kafka/inspector.ts'
import { openKafkaWriter } from '../log/kafka/writer.ts'
import { readPositions } from '../projector/positions/stored-positions.ts'
import { closing } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { inSession, openTables } from '../tables/clickhouse/clickhouse.ts'
import { checkTablesIdentity } from '../tables/schema/identity.ts'
import { distributedRebuilds } from './rebuilds.ts'
import {
  databasesOf,
  kafkaSettings,
  readerSettings,
  required,
  serverSettings,
  shardsOf,
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
    const shards = once(async () => {
      await databases.follow(tables)
      return open(await shardsOf(config, databases))?.shards ?? [{ tables, databases }]
    })
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
      rebuilds: async () => distributedRebuilds(config, { tables, databases }, await shards()),
    })
  })
}

function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opening: Promise<T> | undefined
  return () => (opening ??= open())
}
