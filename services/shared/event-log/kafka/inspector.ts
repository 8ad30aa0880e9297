/** Looks into the event log on Kafka without being one of its projectors: for `status` and `rejects`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import type { PartitionLag } from '../port.ts'
import { createKafka, isOutage, type KafkaSettings } from './client.ts'
import { type Cluster, partitionName, readCommitted, readRanges, type TopicPartition } from './offsets.ts'
import { countRejects, type KeptRejects, readLatestRejects } from './reject-tail.ts'

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
  rejects(query: { limit: number }): Promise<KeptRejects>
  close(): Promise<void>
}

/** Connects to the cluster. Rejects where it cannot be reached. `groupId`: of the projectors. */
export async function openKafkaInspector(
  settings: KafkaSettings & { groupId: string },
  { logger }: { logger: Logger },
): Promise<KafkaInspector> {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { admin, names: settings }
  await admin.connect()
  return {
    group: () => oncePossible(() => readGroup(cluster, settings.groupId)),
    rejectCount: () => countRejects(cluster),
    rejects: query => readLatestRejects({ ...cluster, kafka, groupId: settings.groupId }, query),
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
