/** Reads the event log on Kafka without being one of its projectors: for `status` and `rejects`. */
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import { retry } from '../../retry.ts'
import type { PartitionLag } from '../port.ts'
import type { FoundRejects, RejectFilter, Searched, TakeRejects } from '../reject-filter.ts'
import { createKafka, isOutage, type KafkaSettings } from './client.ts'
import { readCompaction, type TopicCompaction } from './compaction.ts'
import {
  behindIn,
  type Cluster,
  type FindBehind,
  partitionName,
  readCommitted,
  readRanges,
  startOf,
  type TopicPartition,
} from './offsets.ts'
import { countRejects, latestRejects, type SearchBounds, walkRejects } from './reject-search.ts'

// A cluster creates a topic for its first group. Until that is done, it answers that there is no coordinator.
const firstGroupRetry = { isRetryable: isOutage, attemptsMax: 20, pauseMsMin: 250 }

export interface KafkaGroup {
  /** How many projectors the group has at this moment. */
  members: number
  /**
   * One for every partition. `committed` is the offset of the first record if the group has committed none, and where a reader
   * would begin if the group is ahead of what its owner has.
   */
  lag: PartitionLag[]
}

/** The Kafka cluster that the group reads, and whether it has read anything there. */
export interface KafkaPlace {
  /** The id that the cluster got when it was made; null: it does not tell. */
  cluster: string | null
  /** Whether the group has committed a position in it. */
  hasPositions: boolean
}

export interface KafkaInspector {
  group(): Promise<KafkaGroup>
  place(): Promise<KafkaPlace>
  /** How the topics are compacted, one for each topic. */
  compaction(): Promise<TopicCompaction[]>
  /** Messages of the reject topic. A reject that was stored twice counts twice. */
  rejectCount(): Promise<number>
  /** The latest rejects first, each once. Fails if the topic cannot be read in time. */
  rejects(query: RejectFilter & { limit: number }): Promise<FoundRejects>
  /** Passes on the rejects that are stored at this moment, each once, in parts, until `take` returns false. */
  walkRejects(filter: RejectFilter, take: TakeRejects): Promise<Searched>
  close(): Promise<void>
}

export interface KafkaInspectorDependencies {
  logger: Logger
  searchBounds?: SearchBounds
  /** As of a reader. */
  findBehind?: FindBehind
}

/** Connects to the cluster. Rejects if it cannot be reached. `groupId` is the projectors' group. */
export async function openKafkaInspector(
  settings: KafkaSettings & { groupId: string },
  { logger, searchBounds, findBehind }: KafkaInspectorDependencies,
): Promise<KafkaInspector> {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { kafka, admin, names: settings, groupId: settings.groupId }
  await admin.connect()
  return {
    group: () => retry(() => readGroup(cluster, settings.groupId, findBehind), firstGroupRetry),
    place: () => retry(() => readPlace(cluster, settings.groupId), firstGroupRetry),
    compaction: () => readCompaction(cluster),
    rejectCount: () => retry(() => countRejects(cluster), firstGroupRetry),
    rejects: query => latestRejects(cluster, query, searchBounds),
    walkRejects: (filter, take) => walkRejects(cluster, filter, take, searchBounds),
    close: () => admin.disconnect(),
  }
}

async function readGroup(
  cluster: Cluster,
  groupId: string,
  findBehind: FindBehind | undefined,
): Promise<KafkaGroup> {
  const [{ groups }, ranges, committed] = await Promise.all([
    cluster.admin.describeGroups([groupId]),
    readRanges(cluster),
    readCommitted(cluster, groupId),
  ])
  const behind = await behindIn([...ranges.values()], committed, findBehind)
  return {
    members: groups[0]?.members.length ?? 0,
    lag: [...ranges.values()].toSorted(byPlace).map(range => {
      const { topic, partition, high } = range
      const name = partitionName(range)
      return { topic, partition, committed: startOf(committed.get(name), range, behind.get(name)), end: high }
    }),
  }
}

async function readPlace(cluster: Cluster, groupId: string): Promise<KafkaPlace> {
  const { clusterId } = await cluster.admin.describeCluster()
  const committed = await readCommitted(cluster, groupId)
  // A position at the start of the log skips nothing.
  return { cluster: clusterId || null, hasPositions: [...committed.values()].some(offset => offset > 0) }
}

function byPlace(a: TopicPartition, b: TopicPartition): number {
  return topics.indexOf(a.topic) - topics.indexOf(b.topic) || a.partition - b.partition
}
