/** Looks into the event log on Kafka without being one of its projectors: for `status` and `rejects`. */
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import type { PartitionLag } from '../port.ts'
import { createKafka, type KafkaSettings } from './client.ts'
import { partitionName, readCommitted, readRanges, type TopicPartition } from './offsets.ts'
import { countRejects, type KeptRejects, readLatestRejects } from './reject-tail.ts'

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
    async group() {
      const [{ groups }, ranges, committed] = await Promise.all([
        admin.describeGroups([settings.groupId]),
        readRanges(cluster),
        readCommitted(cluster, settings.groupId),
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
    },
    rejectCount: () => countRejects(cluster),
    rejects: query => readLatestRejects({ ...cluster, kafka, groupId: settings.groupId }, query),
    close: () => admin.disconnect(),
  }
}

function byPlace(a: TopicPartition, b: TopicPartition): number {
  return topics.indexOf(a.topic) - topics.indexOf(b.topic) || a.partition - b.partition
}
