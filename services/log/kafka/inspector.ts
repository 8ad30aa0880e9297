/** Reads the event log on Kafka without being one of its projectors: for `status`, `purge` and retries. */
import type { Logger } from 'pino'
import { topics } from '../../../contracts/events/event.ts'
import { retry } from '../../runtime/async/retry.ts'
import { type PartitionLag, partitionName } from '../port.ts'
import { checkTopics, clusterIdOf, createKafka, isOutage, type KafkaSettings, logName } from './client.ts'
import { readWatermark } from './group/commits.ts'
import { readRanges, type TopicPartition } from './offsets.ts'
import { readCompaction } from './topic-settings.ts'

// A cluster creates a topic for its first group. Until that is done, it answers that there is no coordinator.
const firstGroupRetry = { isRetryable: isOutage, attemptsMax: 20, pauseMsMin: 250 }

export type KafkaInspector = Awaited<ReturnType<typeof openKafkaInspector>>

export interface KafkaInspectorDependencies {
  logger: Logger
  /** The positions in the tables of this log, by `partitionName`. */
  positions: (log: string) => Promise<ReadonlyMap<string, { next: number }>>
}

/** Connects to the cluster. Rejects if it cannot be reached, or a topic is missing. `groupId` is the projectors' group. */
export async function openKafkaInspector(
  settings: KafkaSettings & { groupId: string },
  { logger, positions }: KafkaInspectorDependencies,
) {
  const { groupId } = settings
  const admin = createKafka(settings, logger).admin()
  const cluster = { admin, names: settings }

  async function readGroup() {
    const [{ groups }, { log, partitions, remembered }] = await Promise.all([
      admin.describeGroups([groupId]),
      readLog(),
    ])
    const known = await positions(log)
    return {
      /** How many projectors the group has at this moment. */
      members: groups[0]?.members.length ?? 0,
      /** What the group remembers (port.ts). */
      remembered,
      /** One for every partition. `committed` is the position in the tables; if they do not know the partition, its first offset. */
      lag: partitions.map(({ topic, partition, low, end }): PartitionLag => {
        const committed = known.get(partitionName({ topic, partition }))?.next ?? low
        return { topic, partition, committed, end }
      }),
    }
  }

  async function readLog() {
    const clusterId = await clusterIdOf(admin)
    const ranges = await readRanges(cluster)
    return {
      log: logName(settings, clusterId),
      partitions: [...ranges.values()].toSorted(byPlace),
      remembered: await readWatermark(cluster, groupId),
    }
  }

  await admin.connect()
  await checkTopics(admin, settings).catch(async cause => {
    await admin.disconnect()
    throw cause
  })
  return {
    group: () => retry(readGroup, firstGroupRetry),
    /** The log (port.ts), with all of its partitions, and what the group remembers. */
    log: () => retry(readLog, firstGroupRetry),
    /** How the topics are compacted, one for each topic. */
    compaction: () => readCompaction(cluster),
    close: () => admin.disconnect(),
  }
}

function byPlace(a: TopicPartition, b: TopicPartition): number {
  return topics.indexOf(a.topic) - topics.indexOf(b.topic) || a.partition - b.partition
}
