/** Topics for one test, and the content of a topic, read without the code under test. */
import { randomUUID } from 'node:crypto'

import { EventEmitter, once } from 'node:events'
import type { Admin } from 'kafkajs'
import pino from 'pino'
import { topics } from '../../../contracts/events/event.ts'
import { createKafka, type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import type { TopicPartition } from '../../../services/log/kafka/offsets.ts'
import type { ReadMessage } from '../../../services/log/kafka/record.ts'
import { createTopics } from '../../../services/log/kafka/topics.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { NewRecord } from '../../../services/log/port.ts'

export const silent = pino({ level: 'silent' })

/** Settings with the topics of a deployment. */
export function kafkaAt(address: string): KafkaSettings {
  return { brokers: [address], clientId: 'pledgeview-test', topicPrefix: '' }
}

export async function appendRecords(address: string, records: readonly NewRecord[]): Promise<void> {
  const writer = await openKafkaWriter(kafkaAt(address), { logger: silent })
  try {
    await writer.append(records)
  } finally {
    await writer.close()
  }
}

/** Settings of a test with topics and groups that no other test uses. */
export function settingsFor(address: string): KafkaSettings {
  return { ...kafkaAt(address), topicPrefix: `${randomUUID()}.` }
}

/** Makes the topics of these settings. They are not compacted, so that a test may also append records without a key. */
export async function makeTopics(
  settings: KafkaSettings,
  { partitions = 3, config = {} }: { partitions?: number; config?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
  const created = namesOf(settings).map(topic => ({ topic, numPartitions: partitions, configEntries }))
  await withAdmin(settings, admin => createTopics(admin, created))
}

export async function removeTopics(settings: KafkaSettings): Promise<void> {
  await withAdmin(settings, admin => admin.deleteTopics({ topics: namesOf(settings), timeout: 12_000 }))
}

export async function withAdmin<T>(settings: KafkaSettings, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = createKafka(settings, silent).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

// A consumer that reads has a message sooner, also on a busy machine.
const silenceMsMax = 60_000

/** All messages that a topic holds at this moment, with their partitions. Compaction may have left gaps. */
export async function readTopic(
  settings: KafkaSettings,
  name: string,
): Promise<(ReadMessage & { partition: number })[]> {
  const ranges = await withAdmin(settings, admin => admin.fetchTopicOffsets(name))
  // A partition's last message is never compacted away.
  const left = new Map(
    ranges
      .filter(({ low, high }) => low !== high)
      .map(({ partition, high }) => [partition, Number(high) - 1]),
  )
  const messages: (ReadMessage & { partition: number })[] = []
  if (left.size === 0) return messages
  const consumer = createKafka(settings, silent).consumer({ groupId: randomUUID(), maxWaitTimeInMs: 50 })
  const progress = new EventEmitter()
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [name], fromBeginning: true })
    await consumer.run({
      eachBatch: async ({ batch }) => {
        const { partition } = batch
        // Our decoder made them (services/log/kafka/repairs).
        for (const message of batch.messages as unknown[] as ReadMessage[])
          messages.push({ ...message, partition })
        if (Number(batch.lastOffset()) >= (left.get(partition) ?? Infinity)) left.delete(partition)
        progress.emit('message')
      },
    })
    while (left.size > 0) await once(progress, 'message', { signal: AbortSignal.timeout(silenceMsMax) })
    return messages
  } finally {
    await consumer.disconnect()
  }
}

/** The names of all topics of these settings. */
export function namesOf(settings: KafkaSettings): string[] {
  return topics.map(topic => topicName(settings, topic))
}

/** Deletes the records of a partition before an offset. */
export async function deleteBefore(
  settings: KafkaSettings,
  { topic, partition }: TopicPartition,
  offset: number,
): Promise<void> {
  const name = topicName(settings, topic)
  await withAdmin(settings, async admin => {
    // kafkajs finds the partition's broker only in a topic that it has been asked about.
    await admin.fetchTopicOffsets(name)
    await admin.deleteTopicRecords({ topic: name, partitions: [{ partition, offset: `${offset}` }] })
  })
}
