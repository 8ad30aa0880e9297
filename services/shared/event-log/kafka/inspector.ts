/** Looks into the event log on Kafka without being one of its projectors: for `status` and `rejects`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import type { PartitionLag } from '../port.ts'
import type { FoundRejects, RejectFilter, Searched, TakeRejects } from '../reject-filter.ts'
import { createKafka, isOutage, type KafkaSettings } from './client.ts'
import { type Cluster, partitionName, readCommitted, readRanges, type TopicPartition } from './offsets.ts'
import { countRejects, latestRejects, type SearchBounds, walkRejects } from './reject-search.ts'

const attemptsMax = 20
const attemptPauseMs = 250

export interface KafkaGroup {
  /** How many projectors the group has at this moment. */
  members: number
  /** Of every partition; `committed` is the first record's offset where the group has committed none. */
  lag: PartitionLag[]
}

export interface KafkaInspector {
  group(): Promise<KafkaGroup>
  /** Messages of the reject topic: a reject that was put twice counts twice. */
  rejectCount(): Promise<number>
  /** The latest rejects first, each once. Rejects where the topic does not tell them in time. */
  rejects(query: RejectFilter & { limit: number }): Promise<FoundRejects>
  /** Hands over those that are kept at this moment, each once, in parts, until `take` wants no more. */
  walkRejects(filter: RejectFilter, take: TakeRejects): Promise<Searched>
  close(): Promise<void>
}

/** Connects to the cluster. Rejects where it cannot be reached. `groupId`: of the projectors. */
export async function openKafkaInspector(
  settings: KafkaSettings & { groupId: string },
  { logger, searchBounds }: { logger: Logger; searchBounds?: SearchBounds },
): Promise<KafkaInspector> {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { kafka, admin, names: settings, groupId: settings.groupId }
  await admin.connect()
  return {
    group: () => oncePossible(() => readGroup(cluster, settings.groupId)),
    rejectCount: () => countRejects(cluster),
    rejects: query => latestRejects(cluster, query, searchBounds),
    walkRejects: (filter, take) => walkRejects(cluster, filter, take, searchBounds),
    close: () => admin.disconnect(),
  }
}

async function readGroup(cluster: Cluster, groupId: string): Promise<KafkaGroup> {
  const [{ groups }, ranges, committed] = await Promise.all([
    cluster.admin.describeGroups([groupId]),
    readRanges(cluster),
    readCommitted(cluster, groupId),
  ])
  return {
    members: groups[0]?.members.length ?? 0,
    lag: [...ranges.values()].toSorted(byPlace).map(({ topic, partition, low, high }) => ({
      topic,
      partition,
      committed: committed.get(partitionName({ topic, partition })) ?? low,
      end: high,
    })),
  }
}

/** A cluster's first group makes a topic before it has a coordinator, and says until then that there is none. */
async function oncePossible<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (cause) {
      if (!isOutage(cause) || attempt === attemptsMax) throw cause
      await sleep(attemptPauseMs)
    }
  }
}

function byPlace(a: TopicPartition, b: TopicPartition): number {
  return topics.indexOf(a.topic) - topics.indexOf(b.topic) || a.partition - b.partition
}
