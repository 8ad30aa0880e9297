/** The history of the event log on Kafka, for a rebuild. It reads in its own consumer groups. */
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import type { History } from '../history.ts'
import type { Position } from '../port.ts'
import { createKafka, topicName } from './client.ts'
import { createNewRejects } from './new-rejects.ts'
import { partitionName, readCommitted, readRanges } from './offsets.ts'
import { type KafkaReaderSettings, openKafkaReader } from './reader.ts'
import { setOffsets } from './set-offsets.ts'

/**
 * Connects to the cluster. `settings` are the projectors'; their group is the live one. A consumer of the history is
 * a group with that name and a suffix.
 */
export async function openKafkaHistory(
  settings: KafkaReaderSettings,
  { logger }: { logger: Logger },
): Promise<History> {
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  await admin.connect()
  const cluster = { kafka, admin, names: settings, groupId: settings.groupId }
  const groupOf = (consumer: string) => `${settings.groupId}-${consumer}`

  async function livePositions(): Promise<Position[]> {
    const [ranges, committed] = await Promise.all([
      readRanges(cluster),
      readCommitted(cluster, settings.groupId),
    ])
    return [...ranges.values()].map(({ topic, partition, low }) => ({
      topic,
      partition,
      next: committed.get(partitionName({ topic, partition })) ?? low,
    }))
  }

  return {
    async open(consumer) {
      const reader = await openKafkaReader({ ...settings, groupId: groupOf(consumer) }, { logger })
      const newRejects = createNewRejects({ cluster, livePositions })
      return { ...reader, reject: async rejects => reader.reject(await newRejects(rejects)) }
    },

    waitsFor: 'Kafka to form the consumer group of the rebuild',

    seek: (consumer, positions) =>
      setOffsets({ kafka, admin, names: settings }, groupOf(consumer), positions),

    async forget(consumer) {
      // It fails if the group is gone already, or still has a member. Neither is an error here.
      await admin.deleteGroups([groupOf(consumer)]).catch(() => undefined)
    },

    livePositions,

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

    async ends() {
      const ranges = await readRanges(cluster)
      return [...ranges.values()].map(({ topic, partition, high }) => ({ topic, partition, next: high }))
    },

    close: () => admin.disconnect(),
  }
}
