/**
 * The history of the event log on Kafka, for a rebuild. It reads in its own consumer groups.
 *
 * A rebuild takes hours, so each request is repeated while the cluster is away, for at most `outageMsMax`.
 */
import type { Logger } from 'pino'
import { retry } from '../../runtime/async/retry.ts'
import type { History } from '../port.ts'
import { createKafka, whileAway } from './client.ts'
import { readWatermark } from './group/commits.ts'
import { readRanges } from './offsets.ts'
import { type KafkaReaderSettings, openKafkaReader } from './reader.ts'

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
  const cluster = { admin, names: settings }
  const groupOf = (consumer: string) => `${settings.groupId}-${consumer}`
  const { outageMsMax } = settings
  const patient = <T>(work: () => Promise<T>): Promise<T> => retry(work, whileAway(outageMsMax))

  return {
    async open(consumer, starts) {
      // After an outage the group has to form again. Until then a rebuild has nothing better to do than to wait.
      const ofConsumer = { ...settings, groupId: groupOf(consumer), lagMsMax: outageMsMax }
      return openKafkaReader(ofConsumer, { logger, starts })
    },

    async forget(consumer) {
      // It fails if the group is gone already, or still has a member. Neither is an error here.
      await admin.deleteGroups([groupOf(consumer)]).catch(() => undefined)
    },

    async ends() {
      const ranges = await patient(() => readRanges(cluster))
      return [...ranges.values()].map(({ topic, partition, end }) => ({ topic, partition, next: end }))
    },

    remembered: () => patient(() => readWatermark(cluster, settings.groupId)),

    close: () => admin.disconnect(),
  }
}
