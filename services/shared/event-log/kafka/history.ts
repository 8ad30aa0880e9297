/** The event log on Kafka, for a rebuild to read once more, in groups of its own. */
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import type { History } from '../history.ts'
import type { Position } from '../port.ts'
import { createKafka, topicName } from './client.ts'
import { partitionName, readCommitted, readRanges } from './offsets.ts'
import { type KafkaReaderSettings, openKafkaReader } from './reader.ts'

/**
 * Connects to the cluster. `settings`: of the projectors, whose group is the live one; a consumer of the history is a group
 * by the same name and a suffix.
 */
export async function openKafkaHistory(
  settings: KafkaReaderSettings,
  { logger }: { logger: Logger },
): Promise<History> {
  const admin = createKafka(settings, logger).admin()
  await admin.connect()
  const cluster = { admin, names: settings }
  const groupOf = (consumer: string) => `${settings.groupId}-${consumer}`

  return {
    open: consumer => openKafkaReader({ ...settings, groupId: groupOf(consumer) }, { logger }),

    async seek(consumer, positions) {
      for (const topic of topics) {
        const partitions = positions
          .filter(position => position.topic === topic)
          .map(({ partition, next }) => ({ partition, offset: String(next) }))
        if (partitions.length === 0) continue
        await admin.setOffsets({ groupId: groupOf(consumer), topic: topicName(settings, topic), partitions })
      }
    },

    async forget(consumer) {
      // A group that has gone already, or one that still has a member, is none of ours to remove.
      await admin.deleteGroups([groupOf(consumer)]).catch(() => undefined)
    },

    async livePositions() {
      const [ranges, committed] = await Promise.all([
        readRanges(cluster),
        readCommitted(cluster, settings.groupId),
      ])
      return [...ranges.values()].map(({ topic, partition, low }) => ({
        topic,
        partition,
        next: committed.get(partitionName({ topic, partition })) ?? low,
      }))
    },

    async positionsAt(time) {
      const positions: Position[] = []
      for (const topic of topics) {
        for (const { partition, offset } of await admin.fetchTopicOffsetsByTimestamp(
          topicName(settings, topic),
          time,
        )) {
          positions.push({ topic, partition, next: Number(offset) })
        }
      }
      return positions
    },

    close: () => admin.disconnect(),
  }
}
