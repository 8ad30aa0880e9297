/** How long the topics keep what newer events have replaced. For `purge`. */
import type { Admin } from 'kafkajs'
import type { Logger } from 'pino'
import { topics } from '../../../contracts/events/event.ts'
import { portalTopics } from '../../../contracts/events/portal-event.ts'
import { createKafka, type KafkaSettings, topicName } from './client.ts'
import { loadKafkajs } from './library.ts'

/** The retention of an event topic. */
export interface TopicRetention {
  /** The topic's name in the cluster. */
  name: string
  /** How long a replaced record may wait for compaction, ms; null: without bound. */
  compactionMs: number | null
  /** Whether only the portal writes it. */
  isPortals: boolean
}

// Kafka's value for "never" is the largest 64-bit number. No operator means a longer time than this.
const boundMsMax = 1_000 * 365 * 86_400_000

/** Reads the topics' settings, one for each topic. */
export async function readRetention(
  settings: KafkaSettings,
  { logger }: { logger: Logger },
): Promise<TopicRetention[]> {
  const admin = createKafka(settings, logger).admin()
  await admin.connect()
  try {
    const portals = portalTopics.map(topic => topicName(settings, topic))
    const names = topics.map(topic => topicName(settings, topic))
    const configs = await readConfigs(admin, names)
    return names.map(name => ({
      name,
      compactionMs: bounded(configs.get(name)?.['max.compaction.lag.ms']),
      isPortals: portals.includes(name),
    }))
  } finally {
    await admin.disconnect()
  }
}

async function readConfigs(
  admin: Admin,
  names: readonly string[],
): Promise<Map<string, Record<string, string>>> {
  const { ConfigResourceTypes } = loadKafkajs()
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map(name => ({ type: ConfigResourceTypes.TOPIC, name })),
  })
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      Object.fromEntries(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  )
}

function bounded(value: string | undefined): number | null {
  const ms = Number(value)
  return value === undefined || !(ms >= 0 && ms < boundMsMax) ? null : ms
}
