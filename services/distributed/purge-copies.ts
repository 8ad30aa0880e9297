/** What Kafka and a ClickHouse server or cluster keep. Kafka compacts its topics by itself, so a purge says until when. */
import type { Topic } from '../../contracts/events/event.ts'
import { portalTopics } from '../../contracts/events/portal-event.ts'
import type { ModelAccess } from '../embedded/access.ts'
import type { Copies } from '../erasure/purge.ts'
import { leftOver, type PurgedCopy, unreached } from '../erasure/report.ts'
import type { TablesPurge } from '../erasure/tables.ts'
import { withAdmin } from '../log/kafka/client.ts'
import { readCompaction, type TopicCompaction } from '../log/kafka/topic-settings.ts'
import { rollPortalTopics } from '../log/kafka/topics.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import type { Shard } from '../tables/port.ts'
import { kafkaSettings } from './settings.ts'

/** Throws an error if the tables are not migrated. */
export async function distributedCopies({ config, ...model }: ModelAccess): Promise<Copies> {
  const shards = await model.shards()
  return {
    whole: model,
    shards,
    rebuilds: await model.rebuilds(),
    isServed: true,
    lag: model.lag,
    purgeLog: settings => purgeTopics(config, settings),
    others: () => systemLogs(shards),
  }
}

/** Never throws. */
async function purgeTopics(config: Config, { isDry, now }: TablesPurge): Promise<PurgedCopy[]> {
  const logger = createLogger('error')
  try {
    const names = kafkaSettings(config)
    const topics = await withAdmin(names, logger, admin => readCompaction({ admin, names }))
    if (!isDry) await rollPortalTopics(names, { logger })
    return topics.map(topic => topicCopy(topic, { isDry, now: now() }))
  } catch (error) {
    return [unreached('topics', messageOf(error))]
  }
}

function topicCopy(
  { topic, name, compactionLagMs, unreadable }: TopicCompaction,
  { isDry, now }: { isDry: boolean; now: number },
): PurgedCopy {
  const copy = `topic ${name}`
  if (unreadable !== undefined) return unreached(copy, `its settings cannot be read: ${unreadable}`)
  if (compactionLagMs === null) {
    const reason =
      'states that a newer event replaces, without a bound: set max.compaction.lag.ms of the topic'
    return unreached(copy, reason)
  }
  const portals: readonly Topic[] = portalTopics
  const isPortals = portals.includes(topic)
  // The platform publishes events all the time, but days may pass until someone signs up.
  const done = isPortals
    ? `${isDry ? 'appends' : 'appended'} a record to each partition: the brokers compact it`
    : 'nothing: the brokers compact it'
  const event = isPortals ? 'one more record: run the purge again then' : 'one more event after this time'
  const left = `states that a newer event replaces, until each partition has ${event}`
  return leftOver(copy, done, left, now + compactionLagMs)
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
