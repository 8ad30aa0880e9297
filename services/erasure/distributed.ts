/**
 * Purges ClickHouse's tables and what query processes keep, and says until when Kafka keeps the rest: it compacts its topics by
 * itself.
 */

import {
  currentDatabases,
  kafkaSettings,
  readerSettings,
  required,
  serverSettings,
  shardsOf,
} from '../distributed.ts'
import { withDistributedRebuilds } from '../generations/distributed.ts'
import { openKafkaInspector } from '../log/kafka/inspector.ts'
import { readRetention, type TopicRetention } from '../log/kafka/topic-settings.ts'
import { rollPortalTopics } from '../log/kafka/topics.ts'
import { readNextPositions } from '../projector/positions.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { openTables } from '../tables/clickhouse.ts'
import type { Shard } from '../tables/port.ts'
import { purgeCaches } from './caches.ts'
import { untilCaughtUp } from './caught-up.ts'
import { purgeRebuilds } from './rebuilds.ts'
import { leftOver, type PurgedCopy, type PurgeReport, unreached } from './report.ts'
import { purgeTables, type TablesPurge } from './tables.ts'

export interface DistributedPurge extends TablesPurge {
  config: Config
}

/** Throws `ConfigError`, or if the projectors do not get to the end of the log. */
export async function purgeDistributed(purge: DistributedPurge): Promise<PurgeReport> {
  const { config, isDry, now } = purge
  required(config, ['PLEDGEVIEW_KAFKA_BROKERS', 'PLEDGEVIEW_CLICKHOUSE_URL'])
  const startedAt = new Date(now()).toISOString()
  const tables = openTables(serverSettings(config))
  const cluster = await shardsOf(config)
  const whole: Shard = { tables, databases: await currentDatabases(config, tables) }
  const shards = cluster?.shards ?? [whole]
  try {
    if (!isDry) await untilProjected(purge, shards)
    const copies: PurgedCopy[] = await purgeTopics(purge)
    for (const [index, shard] of shards.entries()) {
      copies.push(...(await purgeTables(shard, purge, cluster ? `shard ${index + 1}, ` : '')))
    }
    const logger = createLogger('error')
    copies.push(
      ...(await withDistributedRebuilds(config, { logger }, rebuilds =>
        purgeRebuilds(whole, rebuilds, purge, shards),
      )),
    )
    copies.push(...(await systemLogs(shards)), await purgeCaches(whole, config, purge))
    return { isDry, startedAt, copies }
  } finally {
    await cluster?.close()
    await tables.close()
  }
}

async function untilProjected(purge: DistributedPurge, shards: readonly Shard[]): Promise<void> {
  const { config } = purge
  const logger = createLogger('error')
  const inspector = await openKafkaInspector(readerSettings(config), {
    logger,
    positions: log => readNextPositions(shards, log),
  })
  try {
    await untilCaughtUp({ ...purge, lag: async () => (await inspector.group()).lag, shards })
  } finally {
    await inspector.close()
  }
}

/** Never throws. */
async function purgeTopics({ config, isDry, now }: DistributedPurge): Promise<PurgedCopy[]> {
  const logger = createLogger('error')
  try {
    const topics = await readRetention(kafkaSettings(config), { logger })
    if (!isDry) await rollPortalTopics(kafkaSettings(config), { logger })
    return topics.map(topic => topicCopy(topic, { isDry, now: now() }))
  } catch (error) {
    return [unreached('topics', messageOf(error))]
  }
}

function topicCopy(
  { name, compactionMs, isPortals }: TopicRetention,
  { isDry, now }: { isDry: boolean; now: number },
): PurgedCopy {
  const copy = `topic ${name}`
  if (compactionMs === null) {
    const reason =
      'states that a newer event replaces, without a bound: set max.compaction.lag.ms of the topic'
    return unreached(copy, reason)
  }
  // The platform publishes events all the time, but days may pass until someone signs up.
  const done = isPortals
    ? `${isDry ? 'appends' : 'appended'} a record to each partition: the brokers compact it`
    : 'nothing: the brokers compact it'
  const event = isPortals ? 'one more record: run the purge again then' : 'one more event after this time'
  const left = `states that a newer event replaces, until each partition has ${event}`
  return leftOver(copy, done, left, now + compactionMs)
}

/** A server's own logs have the texts of statements, with ids of campaigns and keys. */
async function systemLogs(shards: readonly Shard[]): Promise<PurgedCopy[]> {
  const [first] = shards
  const logs = await first?.tables
    .rows<{ name: string }>({
      query: `SELECT name FROM system.tables WHERE database = 'system' AND name IN ('query_log', 'text_log') ORDER BY name`,
    })
    .catch(() => [])
  return (logs ?? []).map(({ name }) =>
    leftOver(
      `system.${name}`,
      'nothing',
      'ids of campaigns and API keys in statements; its own TTL removes them',
      null,
    ),
  )
}
