/**
 * Lets the brokers compact topics that get few records. A broker compacts a file only when it has begun the next one, and it begins
 * one only when a record comes. So one record is appended to each partition: a tombstone of a key that nothing else has.
 */
import type { Logger } from 'pino'
import { type PortalTopic, portalTopics } from '../../../contracts/events/portal-event.ts'
import { createKafka, type KafkaSettings, topicName } from './client.ts'

const key = 'purge'

/** Appends a record without content to each partition of the portal's topics. Throws if the cluster cannot be reached. */
export async function rollPortalTopics(
  settings: KafkaSettings,
  { logger }: { logger: Logger },
): Promise<void> {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  // The partition is given, so no partitioner of a key is asked.
  const producer = kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  })
  try {
    await admin.connect()
    await producer.connect()
    const topicMessages = await Promise.all(portalTopics.map(topic => messagesFor(topic)))
    await producer.sendBatch({ acks: -1, topicMessages })
  } finally {
    await Promise.all([admin.disconnect(), producer.disconnect()])
  }

  async function messagesFor(topic: PortalTopic) {
    const name = topicName(settings, topic)
    const partitions = await admin.fetchTopicOffsets(name)
    return { topic: name, messages: partitions.map(({ partition }) => ({ partition, key, value: null })) }
  }
}
