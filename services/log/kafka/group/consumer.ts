/**
 * A member of a consumer group that survives outages of the cluster: kafkajs's consumer, with every kind of failure
 * handled.
 *
 * kafkajs alone either restarts for ever, or stops without ending the process. Here it never restarts by itself. If
 * it crashes because the cluster is away, it is restarted, for at most `outageMsMax`. Any other crash is a failure.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import {
  type Position,
  partitionName,
  type RememberedWatermark,
  readingOrder,
  SupersededAssignment,
} from '../../port.ts'
import { isOutage, type KafkaSettings, requestRetry, topicName, topicOfName } from '../client.ts'
import type { TopicPartition } from '../offsets.ts'
import type { KafkaReaderSettings } from '../reader.ts'
import type { ReadMessage } from '../record.ts'
import { foldPartition, metadataOf } from './commits.ts'

/** The events of a member. A handler must not wait: it runs inside kafkajs's loop, which also sends the heartbeats. */
export interface MemberEvents {
  /** The group assigned these partitions to the member. They replace all others. */
  onJoin(memberId: string, partitions: readonly TopicPartition[]): void
  /** The member left the group, by itself or because it crashed. */
  onLeave(): void
  /**
   * All messages from offset `from` up to `next`; none if these offsets have no record. Returns whether they were taken. If not, they are
   * delivered again.
   */
  onMessages(at: TopicPartition, from: number, messages: readonly ReadMessage[], next: number): boolean
  /** The group's coordinator answered. */
  onAlive(): void
  /** The member cannot continue. */
  onFailure(error: Error): void
}

export interface Member {
  /**
   * Joins the group. Rejects if the cluster cannot be reached or a topic is missing. Later failures go to
   * `onFailure`.
   */
  start(): Promise<void>
  /** Stops fetching these partitions. Records that are on their way are dropped. */
  pause(partitions: readonly TopicPartition[]): void
  resume(partitions: readonly TopicPartition[]): void
  /** Fetches a partition from this offset next. */
  seek(at: TopicPartition, offset: number): void
  /** Commits under the current generation, with this watermark (commits.ts). Rejects with kafkajs's error. */
  commit(positions: readonly Position[], watermark: RememberedWatermark): Promise<void>
  /** Leaves the group, so that other members get the partitions at once. */
  close(): Promise<void>
}

/**
 * The most that one fetch from one broker returns, before decompression, unless its first batch alone is larger. It
 * is small because kafkajs makes several objects of each record before it delivers the first.
 */
export const fetchBytesMax = 1024 ** 2
const partitionFetchBytesMax = 256 * 1024
// How long a broker waits for that many bytes. Also how soon a resumed partition is fetched again. A busy projector collects a batch for longer.
// If records were fetched as they come, 2,000 a second would cost the broker and two projectors 0.4 of a core more, which the fold needs.
const fetchWaitMsMax = 100
const fetchBytesMin = 65_536
export const rebalanceMsMax = 60_000
const metadataMsMax = 60_000
const restartPauseMs = 1_000

export interface MemberDependencies {
  kafka: Kafkajs.Kafka
  settings: KafkaReaderSettings
  events: MemberEvents
  logger: Logger
}

/** A member that has not joined yet. */
export function createMember({ kafka, settings, events, logger }: MemberDependencies): Member {
  const consumer = kafka.consumer(consumerConfig(settings))
  let commitOnce: Kafkajs.EachBatchPayload['commitOffsetsIfNecessary'] | undefined
  const mayRestart = createRestartPolicy(settings)
  let restart: NodeJS.Timeout | undefined
  let isClosing = false
  let commits = 0

  const runConfig: Kafkajs.ConsumerRunConfig = {
    autoCommit: false,
    eachBatchAutoResolve: false,
    async eachBatch({ batch, resolveOffset, commitOffsetsIfNecessary }) {
      // `consumer.commitOffsets` would try again under a newer generation. This function does not.
      commitOnce = commitOffsetsIfNecessary
      // Resolving only moves the next fetch. After a join, reading begins at the committed offset.
      if (handle(batch)) resolveOffset(batch.lastOffset())
    },
  }

  function handle(batch: Kafkajs.Batch): boolean {
    try {
      const at = { topic: topicOfName(settings, batch.topic), partition: batch.partition }
      const messages = batch.messages as unknown[] as ReadMessage[]
      return events.onMessages(at, fetchedOffset(batch), messages, Number(batch.lastOffset()) + 1)
    } catch (cause) {
      // kafkajs would crash on some errors, and repeat the batch for ever on others. So none of our errors reaches
      // it.
      events.onFailure(cause instanceof Error ? cause : new Error(String(cause)))
      return false
    }
  }

  function onCrash(error: Error): void {
    events.onLeave()
    commitOnce = undefined
    if (isClosing) return
    if (!mayRestart(error)) {
      events.onFailure(new Error(`the Kafka consumer stopped: ${error.message}`, { cause: error }))
      return
    }
    logger.warn({ error: error.message }, 'the Kafka cluster is away; trying again')
    restart = setTimeout(() => consumer.run(runConfig).catch(events.onFailure), restartPauseMs)
  }

  const { GROUP_JOIN, HEARTBEAT, STOP, CRASH, COMMIT_OFFSETS } = consumer.events
  consumer.on(COMMIT_OFFSETS, () => {
    commits++
  })
  consumer.on(GROUP_JOIN, ({ payload: { memberId, memberAssignment } }) => {
    events.onAlive()
    events.onJoin(memberId, partitionsOf(settings, memberAssignment))
  })
  consumer.on(HEARTBEAT, () => events.onAlive())
  consumer.on(STOP, () => events.onLeave())
  consumer.on(CRASH, ({ payload: { error } }) => onCrash(error))

  return {
    async start() {
      await consumer.connect()
      await consumer.subscribe({
        // A broker fills its answer in this order.
        topics: readingOrder.map(topic => topicName(settings, topic)),
        // For a group without offsets. It has no effect, because `seek` comes first.
        fromBeginning: true,
      })
      await consumer.run(runConfig)
    },
    pause: partitions => consumer.pause(byTopic(settings, partitions, ({ partition }) => partition)),
    resume: partitions => consumer.resume(byTopic(settings, partitions, ({ partition }) => partition)),
    seek: ({ topic, partition }, offset) =>
      consumer.seek({ topic: topicName(settings, topic), partition, offset: String(offset) }),
    async commit(positions, watermark) {
      const topics = byTopic(settings, positions, at => ({
        partition: at.partition,
        offset: String(at.next),
        ...(isOfFold(at) && { metadata: metadataOf(watermark) }),
      }))
      if (commitOnce) return void (await commitOnce({ topics }))
      // Nothing was fetched yet, so only the watermark is new. This function resolves also if the consumer has stopped.
      const before = commits
      await consumer.commitOffsets(
        topics.flatMap(({ topic, partitions }) => partitions.map(at => ({ topic, ...at }))),
      )
      if (commits === before) throw new SupersededAssignment('the consumer has left its group')
    },
    async close() {
      isClosing = true
      clearTimeout(restart)
      await consumer.disconnect()
    },
  }
}

/** Crashes in quick succession are one outage, even if the member returns for a moment in between. */
function createRestartPolicy({ outageMsMax }: KafkaReaderSettings): (error: Error) => boolean {
  let since = Number.NEGATIVE_INFINITY
  let last = Number.NEGATIVE_INFINITY
  return error => {
    const now = performance.now()
    if (now - last > outageMsMax) since = now
    last = now
    return (isOutage(error) || isOfJoin(error)) && now - since <= outageMsMax
  }
}

/** While a group forms, its coordinator may move. After its tries, kafkajs gives up with a plain error that it calls retriable. */
function isOfJoin({ cause }: Error): boolean {
  return (
    cause instanceof Error &&
    cause.name === 'KafkaJSError' &&
    'retriable' in cause &&
    cause.retriable === true
  )
}

function consumerConfig(settings: KafkaReaderSettings): Kafkajs.ConsumerConfig {
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
    minBytes: fetchBytesMin,
    allowAutoTopicCreation: false,
    retry: { ...requestRetry(settings), restartOnFailure: async () => false },
  }
}

/** The offset from which a batch was fetched. kafkajs has it, but its types do not. */
function fetchedOffset(batch: Kafkajs.Batch & { fetchedOffset?: string }): number {
  if (batch.fetchedOffset === undefined)
    throw new Error('kafkajs does not say from which offset it fetched a batch')
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

/** In the form of kafkajs: of each topic what `of` makes of its partitions. */
function byTopic<At extends TopicPartition, Of>(
  settings: KafkaSettings,
  partitions: readonly At[],
  of: (at: At) => Of,
) {
  return [...Map.groupBy(partitions, ({ topic }) => topic)].map(([topic, ofTopic]) => ({
    topic: topicName(settings, topic),
    partitions: ofTopic.map(of),
  }))
}

const isOfFold = (at: TopicPartition) => partitionName(at) === partitionName(foldPartition)
