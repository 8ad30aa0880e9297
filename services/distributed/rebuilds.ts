/** Rebuilds on Kafka and a ClickHouse server or cluster. */

import type { RebuildTables } from '../generations/context.ts'
import { createRebuilds, type Rebuilds } from '../generations/rebuilds.ts'
import { openKafkaHistory } from '../log/kafka/history.ts'
import { backerHasher } from '../projector/ingest/backer-hash.ts'
import { closing } from '../runtime/async/closing.ts'
import type { Config } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import type { Shard } from '../tables/port.ts'
import { holdTablesIdentity } from '../tables/schema/identity.ts'
import { checkMigrated } from '../tables/schema/migrate.ts'
import { readerSettings, registryOf, required } from './settings.ts'

/**
 * Throws an error if the tables are not migrated. Kafka is only contacted by what needs it. `shards` have the rows of the tables: the
 * tables themselves, if it is one server.
 */
export async function distributedRebuilds(
  config: Config,
  { tables, databases }: RebuildTables,
  shards: readonly Shard[],
): Promise<Rebuilds> {
  for (const shard of shards) await checkMigrated(shard.tables, shard.databases)
  const name = config.PLEDGEVIEW_CLICKHOUSE_CLUSTER
  const place = { tables, databases, cluster: name === undefined ? undefined : { name, shards } }
  const logger = createLogger('error')
  return createRebuilds({
    ...{ ...place, config, logger: createLogger('warn'), isAlone: false },
    withHistory: work =>
      closing(async open => work(open(await openKafkaHistory(readerSettings(config), { logger })))),
    decoding: () => decodingOf(config, place),
  })
}

async function decodingOf(config: Config, place: RebuildTables) {
  const { tables, databases } = place
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, ['PLEDGEVIEW_BACKER_KEY'])
  // Under another key, every backer would get another hash and would be counted again.
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  const hashBacker = backerHasher(backerKey)
  return { hashBacker, schemaRegistry: registryOf(config) }
}
