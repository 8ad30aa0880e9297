/** The topics that Pledgeview needs. They are created if that is allowed, and otherwise compared with what it
 * needs. A purge lets the brokers compact the portal's topics. */
import type { Admin, ITopicConfig } from 'kafkajs'
import type { Logger } from 'pino'
import { topics } from '../../../contracts/events/event.ts'
import { portalTopics } from '../../../contracts/events/portal-event.ts'
import { closing } from '../../runtime/async/closing.ts'
import { retry } from '../../runtime/async/retry.ts'
import type { Config } from '../../runtime/config.ts'
import { isOutage, type KafkaSettings, type TopicNames, topicName, withAdmin } from './client.ts'
import { partitionOf } from './record.ts'
import { readTopicSettings } from './topic-settings.ts'
import { openKafkaWriter } from './writer.ts'

// kafkajs's default is 5 s, which a controller that has just started on a busy machine may need. A request may take 15 s.
const controllerMsMax = 12_000
const looksMax = 300
const lookPauseMs = 100

/**
 * Checks the topics, and creates missing ones if `create` is true. Resolves with the names that it created. If a topic is
 * missing or has other settings, throws an error with a line for each fault. An existing topic is never changed.
 */
export async function ensureTopics(
  settings: KafkaSettings,
  config: Config,
  { create, logger }: { create: boolean; logger: Logger },
): Promise<string[]> {
  const wanted = wantedTopics(settings, config)
  return withAdmin(settings, logger, async admin => {
    const existing = new Set(await admin.listTopics())
    const missing = wanted.filter(({ topic }) => !existing.has(topic))
    if (create) await createTopics(admin, missing)
    const present = create ? wanted : wanted.filter(({ topic }) => existing.has(topic))
    const faults = create ? [] : missing.map(({ topic }) => `the topic ${topic} is missing`)
    faults.push(...(await differences(admin, present)))
    if (faults.length > 0) throw new Error(faults.join('\n'))
    return create ? missing.map(({ topic }) => topic) : []
  })
}

/**
 * Creates topics that may exist already, and waits until their partitions answer. kafkajs's own wait fails if the
 * controller has created a topic and the connected broker does not know it yet.
 */
export async function createTopics(admin: Admin, created: readonly ITopicConfig[]): Promise<void> {
  if (created.length === 0) return
  await admin.createTopics({ topics: [...created], waitForLeaders: false, timeout: controllerMsMax })
  const noAnswer = new Error('the topics were created, but not all of their partitions answer')
  const look = async () => {
    const known = new Set(await admin.listTopics())
    if (!created.every(({ topic }) => known.has(topic))) throw noAnswer
    // A broker may announce that it leads a partition shortly before it does.
    await Promise.all(created.map(({ topic }) => admin.fetchTopicOffsets(topic))).catch(cause => {
      throw isOutage(cause) ? noAnswer : cause
    })
  }
  await retry(look, {
    isRetryable: error => error === noAnswer,
    attemptsMax: looksMax,
    pauseMsMin: lookPauseMs,
  })
}

// Deletion by age or size would delete states that no later event repeats.
const cleanup = { name: 'cleanup.policy', value: 'compact' }

/** The topics as they are created. Of the settings, an existing topic has to have the clean-up alone. */
export function wantedTopics(settings: TopicNames, wanted: Config) {
  return topics.map(topic => ({
    topic: topicName(settings, topic),
    numPartitions: wanted.PLEDGEVIEW_KAFKA_PARTITIONS,
    replicationFactor: wanted.PLEDGEVIEW_KAFKA_REPLICATION,
    configEntries: [
      cleanup,
      { name: 'delete.retention.ms', value: String(wanted.PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS) },
      // By default Kafka compacts only when half of a partition is new, so deleted states may stay for years.
      { name: 'max.compaction.lag.ms', value: String(wanted.PLEDGEVIEW_KAFKA_COMPACTION_LAG_MS) },
    ],
  }))
}

async function differences(admin: Admin, wanted: readonly ITopicConfig[]): Promise<string[]> {
  if (wanted.length === 0) return []
  const names = wanted.map(({ topic }) => topic)
  const [{ topics: found }, settings] = await Promise.all([
    admin.fetchTopicMetadata({ topics: names }),
    readTopicSettings(admin, names),
  ])
  return wanted.flatMap(({ topic, numPartitions, replicationFactor }) => {
    const partitions = found.find(({ name }) => name === topic)?.partitions ?? []
    const replicas = Math.min(...partitions.map(({ replicas }) => replicas.length))
    const facts = [
      ['partitions', partitions.length, numPartitions],
      ['replicas', replicas, replicationFactor],
      [cleanup.name, settings.get(topic)?.[cleanup.name], cleanup.value],
    ]
    return facts
      .filter(([, is, expected]) => is !== expected)
      .map(([what, is, expected]) => `the topic ${topic} has ${what} ${is} instead of ${expected}`)
  })
}

/**
 * Lets the brokers compact the portal's topics, which get few records. A broker compacts a file only when it has begun the next one,
 * and it begins one only when a record comes. So this appends a record without content to each partition: a tombstone of a key that
 * nothing else has. Throws if the cluster cannot be reached.
 */
export async function rollPortalTopics(
  settings: KafkaSettings,
  { logger }: { logger: Logger },
): Promise<void> {
  const records = await withAdmin(settings, logger, admin =>
    Promise.all(
      portalTopics.map(async topic => {
        const partitions = await admin.fetchTopicOffsets(topicName(settings, topic))
        const keys = partitions.map(({ partition }) => purgeKeyOf(partition, partitions.length))
        return keys.map(key => ({ topic, key, value: null }))
      }),
    ),
  )
  await closing(async open => open(await openKafkaWriter(settings, { logger })).append(records.flat()))
}

/** A key that belongs to this partition, as keys of records do, and that nothing else has. */
function purgeKeyOf(partition: number, partitions: number): Uint8Array {
  for (let n = 0; ; n++) {
    const key = Buffer.from(`purge-${n}`)
    if (partitionOf(key, partitions) === partition) return key
  }
}
