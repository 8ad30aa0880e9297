/**
 * A copy of Pledgeview's topics, as a mirror of Kafka has them (MirrorMaker 2): every record that the log still holds, in its
 * partition, with its key, headers and timestamp, tombstones included, and the settings of the topics. Offsets are not copied: a
 * mirror gives each record the next free one.
 */
import type { ITopicConfig, KafkaMessage } from 'kafkajs'
import { createKafka, type KafkaSettings } from '../../../services/log/kafka/client.ts'
import { writeHeaders } from '../../../services/log/kafka/record.ts'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import { createTopics } from '../../../services/log/kafka/topics.ts'
import { namesOf, readTopic, silent, withAdmin } from './topics.ts'

export type TopicCopy = Awaited<ReturnType<typeof copyTopics>>[number]

type CopiedRecord = Pick<KafkaMessage, 'key' | 'value' | 'headers' | 'timestamp'> & {
  partition: number
}

/** Reads the events, and what the portal keeps. Compacted topics are copied as they are after compaction. */
export async function copyTopics(settings: KafkaSettings) {
  const described = await describeTopics(settings)
  return Promise.all(
    described.map(async topic => {
      const messages = (await readTopic(settings, topic.topic)).toSorted(
        (a, b) => a.partition - b.partition || Number(a.offset) - Number(b.offset),
      )
      const records = messages.map(({ partition, key, value, headers, timestamp }) => ({
        ...{ partition, key, value, timestamp },
        headers: writeHeaders(headers),
      }))
      return { topic, records: isCompacted(topic) ? latestOf(records) : records }
    }),
  )
}

/** Creates the topics of a copy in a cluster without any, and writes its records. */
export async function restoreTopics(settings: KafkaSettings, copies: readonly TopicCopy[]): Promise<void> {
  await withAdmin(settings, admin =>
    createTopics(
      admin,
      copies.map(({ topic }) => topic),
    ),
  )
  const producer = createKafka(settings, silent).producer({
    idempotent: true,
    // It uses the partition that a message names.
    createPartitioner: loadKafkajs().Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  try {
    const topicMessages = copies.map(({ topic, records }) => ({ topic: topic.topic, messages: records }))
    await producer.sendBatch({ acks: -1, topicMessages })
  } finally {
    await producer.disconnect()
  }
}

/** As a mirror does that copies the positions of consumer groups: the group stands after the last record of each partition. */
export async function copyPositions(settings: KafkaSettings, groupId: string): Promise<void> {
  const topics = namesOf(settings)
  const ends = await withAdmin(settings, admin =>
    Promise.all(topics.map(async topic => ({ topic, ranges: await admin.fetchTopicOffsets(topic) }))),
  )
  const positions = ends.flatMap(({ topic, ranges }) =>
    ranges.map(({ partition, high }) => ({ topic, partition, offset: high })),
  )
  // Not `setOffsets` of kafkajs: it joins the group once for each topic, and waits five seconds for a record each time.
  const consumer = createKafka(settings, silent).consumer({ groupId, maxWaitTimeInMs: 50 })
  const joined = new Promise(resolve => consumer.on(consumer.events.GROUP_JOIN, resolve))
  await consumer.connect()
  try {
    await consumer.subscribe({ topics })
    await consumer.run({ autoCommit: false, eachBatch: async () => {} })
    await joined
    await consumer.commitOffsets(positions)
  } finally {
    await consumer.disconnect()
  }
}

/** The topics with their partitions and with the settings that are not the cluster's. */
async function describeTopics(settings: KafkaSettings): Promise<ITopicConfig[]> {
  const { TOPIC } = loadKafkajs().ConfigResourceTypes
  const { TOPIC_CONFIG } = loadKafkajs().ConfigSource
  const names = namesOf(settings)
  return withAdmin(settings, async admin => {
    const { topics: found } = await admin.fetchTopicMetadata({ topics: names })
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: names.map(name => ({ type: TOPIC, name })),
    })
    return names.map(topic => ({
      topic,
      numPartitions: found.find(({ name }) => name === topic)?.partitions.length ?? 0,
      replicationFactor: 1,
      configEntries: (resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? [])
        .filter(({ configSource }) => configSource === TOPIC_CONFIG)
        .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
    }))
  })
}

function isCompacted({ configEntries }: ITopicConfig): boolean {
  return (configEntries ?? []).some(({ name, value }) => name === 'cleanup.policy' && value === 'compact')
}

/** What compaction leaves: the last record of each key. Tombstones stay for their time. */
function latestOf(records: readonly CopiedRecord[]): CopiedRecord[] {
  const placeOf = ({ partition, key }: CopiedRecord) => `${partition}/${key?.toString('hex')}`
  const last = new Map(records.map(record => [placeOf(record), record]))
  return records.filter(record => last.get(placeOf(record)) === record)
}
