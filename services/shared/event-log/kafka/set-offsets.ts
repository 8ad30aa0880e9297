/**
 * Sets the committed offsets of a consumer group that has no members.
 *
 * It joins the group once for all topics. kafkajs's own `setOffsets` joins once per topic, and each time waits for the broker's
 * initial rebalance delay (3 s by default) and for a fetch.
 */
import type * as Kafkajs from 'kafkajs'
import type { Position } from '../port.ts'
import { type KafkaSettings, requestRetry, topicName } from './client.ts'

const emptyStates: readonly string[] = ['Empty', 'Dead']
const fetchWaitMsMax = 100

/** Throws if the group has members, or if the cluster cannot be reached. */
export async function setOffsets(
  { kafka, admin, names }: { kafka: Kafkajs.Kafka; admin: Kafkajs.Admin; names: KafkaSettings },
  groupId: string,
  positions: readonly Position[],
): Promise<void> {
  if (positions.length === 0) return
  const { groups } = await admin.describeGroups([groupId])
  const state = groups[0]?.state ?? 'Dead'
  if (!emptyStates.includes(state)) {
    throw new Error(`the positions of the consumer group ${groupId} cannot be set: it has members (${state})`)
  }
  const consumer = kafka.consumer({
    groupId,
    allowAutoTopicCreation: false,
    maxWaitTimeInMs: fetchWaitMsMax,
    retry: { ...requestRetry(names), restartOnFailure: async () => false },
  })
  const { promise: joined, resolve, reject } = Promise.withResolvers<void>()
  // If connecting fails, nothing awaits it.
  joined.catch(() => undefined)
  consumer.on(consumer.events.GROUP_JOIN, () => resolve())
  consumer.on(consumer.events.CRASH, ({ payload: { error } }) => reject(error))
  try {
    await consumer.connect()
    await consumer.subscribe({
      topics: [...new Set(positions.map(({ topic }) => topicName(names, topic)))],
      fromBeginning: true,
    })
    await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async () => {} })
    await joined
    await consumer.commitOffsets(
      positions.map(({ topic, partition, next }) => ({
        topic: topicName(names, topic),
        partition,
        offset: String(next),
      })),
    )
  } finally {
    await consumer.disconnect()
  }
}
