/**
 * A member of a consumer group, kept alive over outages of the cluster: kafkajs's consumer, with every way that it can
 * fail named.
 *
 * kafkajs alone either restarts for ever or stops without ending the process. Here it never restarts by itself: a
 * crash for want of the cluster is followed by another start, for at most `outageMsMax`; any other crash is a failure.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import type { Topic } from '../../../../contracts/events/event.ts'
import type { Position } from '../port.ts'
import { isOutage, type KafkaSettings, requestRetry, topicName, topicOfName } from './client.ts'
import type { TopicPartition } from './offsets.ts'

/** What a member is told. Nothing here may wait: it runs inside kafkajs's loop, which also sends the heartbeats. */
export interface MemberEvents {
  /** The group gave the member these partitions, in place of all others. */
  onJoin(memberId: string, partitions: readonly TopicPartition[]): void
  /** The member has left the group, by itself or because it crashed. */
  onLeave(): void
  /** Messages that were fetched from offset `from`. Returns whether they were taken; if not, they come again. */
  onMessages(
    at: TopicPartition,
    from: number,
    messages: readonly Kafkajs.KafkaMessage[],
    next: number,
  ): boolean
  /** Nothing but offsets without a record was fetched: it begins at `from` or before, and ends before `next`. */
  onNothing(at: TopicPartition, from: number, next: number): void
  /** The group's coordinator knows the member. */
  onAlive(): void
  /** The member cannot go on. */
  onFailure(error: Error): void
}

export interface Member {
  /** Joins the group. Rejects where the cluster cannot be reached or has not all topics; later failures are told. */
  start(): Promise<void>
  /** Stops fetching these partitions; what is on its way is dropped. */
  pause(partitions: readonly TopicPartition[]): void
  resume(partitions: readonly TopicPartition[]): void
  /** Fetches a partition from here next. */
  seek(at: TopicPartition, offset: number): void
  /** Commits once, under the generation of this moment. Rejects with kafkajs's error. */
  commit(positions: readonly Position[]): Promise<void>
  /** Leaves the group, so that others take over at once. */
  close(): Promise<void>
}

export interface MemberSettings extends KafkaSettings {
  groupId: string
  /** The group forgets a member that it has not heard of for so long, ms. */
  sessionMs: number
  /** How often the group hears of a member, ms. */
  heartbeatMs: number
  /** How long the cluster may be away before the member fails, ms. */
  outageMsMax: number
}

/**
 * The most that one fetch of one broker brings, before decompression, unless its first batch alone is larger. Small,
 * because kafkajs makes several objects of each record before it hands over the first.
 */
export const fetchBytesMax = 1024 ** 2
const partitionFetchBytesMax = 256 * 1024
// A broker fills its answer in this order: the fewer and the more urgent first.
const fetchOrder = ['api-keys', 'campaigns', 'pledges'] as const satisfies readonly Topic[]
// How long a broker waits for records to come; also how soon a partition that is resumed is fetched again.
const fetchWaitMsMax = 100
const rebalanceMsMax = 60_000
const metadataMsMax = 60_000
const restartPauseMs = 1_000

export interface MemberDependencies {
  kafka: Kafkajs.Kafka
  settings: MemberSettings
  events: MemberEvents
  logger: Logger
  monotonicMs: () => number
}

/** A member that has not joined yet. */
export function createMember({ kafka, settings, events, logger, monotonicMs }: MemberDependencies): Member {
  const consumer = kafka.consumer(consumerConfig(settings))
  let commitOnce: Kafkajs.EachBatchPayload['commitOffsetsIfNecessary'] | undefined
  const mayRestart = createRestartPolicy(settings, monotonicMs)
  let restart: NodeJS.Timeout | undefined
  let isClosing = false

  const runConfig: Kafkajs.ConsumerRunConfig = {
    autoCommit: false,
    eachBatchAutoResolve: false,
    async eachBatch({ batch, resolveOffset, commitOffsetsIfNecessary }) {
      // Unlike `consumer.commitOffsets` it does not try again under whatever generation there is by then.
      commitOnce = commitOffsetsIfNecessary
      // Resolving moves the next fetch and nothing else: a join begins again at what is committed.
      if (handle(batch)) resolveOffset(lastOf(batch.messages).offset)
    },
  }

  function handle(batch: Kafkajs.Batch): boolean {
    try {
      const at = { topic: topicOfName(settings, batch.topic), partition: batch.partition }
      return events.onMessages(at, fetchedOffset(batch), batch.messages, Number(batch.lastOffset()) + 1)
    } catch (cause) {
      // kafkajs would crash for some errors, and repeat the batch for ever for others: none of ours reaches it.
      events.onFailure(cause instanceof Error ? cause : new Error(String(cause)))
      return false
    }
  }

  function onCrash(error: Error): void {
    events.onLeave()
    if (isClosing) return
    if (!mayRestart(error)) {
      events.onFailure(new Error(`the Kafka consumer stopped: ${error.message}`, { cause: error }))
      return
    }
    logger.warn({ error: error.message }, 'the Kafka cluster is away; trying again')
    restart = setTimeout(() => consumer.run(runConfig).catch(events.onFailure), restartPauseMs)
  }

  const { GROUP_JOIN, HEARTBEAT, STOP, CRASH, START_BATCH_PROCESS } = consumer.events
  consumer.on(GROUP_JOIN, ({ payload: { memberId, memberAssignment } }) => {
    events.onAlive()
    events.onJoin(memberId, partitionsOf(settings, memberAssignment))
  })
  consumer.on(HEARTBEAT, () => events.onAlive())
  consumer.on(STOP, () => events.onLeave())
  consumer.on(CRASH, ({ payload: { error } }) => onCrash(error))
  // A batch without a message for us never reaches `eachBatch`.
  consumer.on(
    START_BATCH_PROCESS,
    ({ payload: { topic, partition, batchSize, firstOffset, lastOffset } }) => {
      if (batchSize > 0) return
      const at = { topic: topicOfName(settings, topic), partition }
      events.onNothing(at, Number(firstOffset ?? lastOffset), Number(lastOffset) + 1)
    },
  )

  return {
    async start() {
      await consumer.connect()
      await consumer.subscribe({
        topics: fetchOrder.map(topic => topicName(settings, topic)),
        // What kafkajs does where a group has no offsets; it is told where to read before it comes to that.
        fromBeginning: true,
      })
      await consumer.run(runConfig)
    },
    pause: partitions => consumer.pause(byTopic(settings, partitions)),
    resume: partitions => consumer.resume(byTopic(settings, partitions)),
    seek: ({ topic, partition }, offset) =>
      consumer.seek({ topic: topicName(settings, topic), partition, offset: String(offset) }),
    async commit(positions) {
      if (!commitOnce) throw new Error('a commit before anything was fetched')
      await commitOnce({ topics: offsetsByTopic(settings, positions) })
    },
    async close() {
      isClosing = true
      clearTimeout(restart)
      await consumer.disconnect()
    },
  }
}

/** Crashes that follow one another are one outage, though the member comes back for a moment in between. */
function createRestartPolicy(
  { outageMsMax }: MemberSettings,
  monotonicMs: () => number,
): (error: Error) => boolean {
  let since = Number.NEGATIVE_INFINITY
  let last = Number.NEGATIVE_INFINITY
  return error => {
    const now = monotonicMs()
    if (now - last > outageMsMax) since = now
    last = now
    return isOutage(error) && now - since <= outageMsMax
  }
}

function consumerConfig(settings: MemberSettings): Kafkajs.ConsumerConfig {
  const { groupId, sessionMs, heartbeatMs } = settings
  return {
    groupId,
    sessionTimeout: sessionMs,
    heartbeatInterval: heartbeatMs,
    rebalanceTimeout: rebalanceMsMax,
    metadataMaxAge: metadataMsMax,
    maxBytes: fetchBytesMax,
    maxBytesPerPartition: partitionFetchBytesMax,
    maxWaitTimeInMs: fetchWaitMsMax,
    minBytes: 1,
    allowAutoTopicCreation: false,
    retry: { ...requestRetry(settings), restartOnFailure: async () => false },
  }
}

/** From which offset a batch was fetched: kafkajs knows it and does not say so in its types. */
function fetchedOffset(batch: Kafkajs.Batch & { fetchedOffset?: string }): number {
  if (batch.fetchedOffset === undefined) throw new Error('kafkajs does not say from where it fetched a batch')
  return Number(batch.fetchedOffset)
}

function partitionsOf(
  settings: KafkaSettings,
  assignment: Readonly<Record<string, readonly number[]>>,
): TopicPartition[] {
  return Object.entries(assignment).flatMap(([name, partitions]) => {
    const topic = topicOfName(settings, name)
    return partitions.map(partition => ({ topic, partition }))
  })
}

function byTopic(settings: KafkaSettings, partitions: readonly TopicPartition[]): Kafkajs.TopicPartitions[] {
  return [...Map.groupBy(partitions, ({ topic }) => topic)].map(([topic, ofTopic]) => ({
    topic: topicName(settings, topic),
    partitions: ofTopic.map(({ partition }) => partition),
  }))
}

function offsetsByTopic(settings: KafkaSettings, positions: readonly Position[]): Kafkajs.TopicOffsets[] {
  return [...Map.groupBy(positions, ({ topic }) => topic)].map(([topic, ofTopic]) => ({
    topic: topicName(settings, topic),
    partitions: ofTopic.map(({ partition, next }) => ({ partition, offset: String(next) })),
  }))
}

function lastOf<T>(items: readonly T[]): T {
  const last = items.at(-1)
  if (last === undefined) throw new Error('a batch without messages')
  return last
}
