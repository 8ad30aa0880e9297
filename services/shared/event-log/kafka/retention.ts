/** How long the topics keep what newer events have replaced, and the deletion of all rejects. For `purge`. */
import type { Admin } from 'kafkajs'
import type { Logger } from 'pino'
import { topics } from '../../../../contracts/events/event.ts'
import { portalTopics } from '../../../../contracts/events/portal-event.ts'
import { createKafka, type KafkaSettings, rejectTopicName, topicName } from './client.ts'
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

export interface RejectRetention {
  name: string
  messages: number
  /** Whether it has never had a message. */
  isUnused: boolean
  /** How long a message is kept at most, ms; null: without bound. */
  keptMs: number | null
}

export interface Retention {
  topics: TopicRetention[]
  rejects: RejectRetention
}

// Kafka's value for "never" is the largest 64-bit number. No operator means a longer time than this.
const boundMsMax = 1_000 * 365 * 86_400_000
// Deletes up to the end of the partition.
const endOffset = '-1'

/** Reads the topics' settings. If `removesRejects`, it first deletes all messages of the reject topic. */
export async function readRetention(
  settings: KafkaSettings,
  { removesRejects, logger }: { removesRejects: boolean; logger: Logger },
): Promise<Retention> {
  const admin = createKafka(settings, logger).admin()
  await admin.connect()
  try {
    const rejects = rejectTopicName(settings)
    if (removesRejects) await deleteMessages(admin, rejects)
    const portals = portalTopics.map(topic => topicName(settings, topic))
    const names = [...topics.map(topic => topicName(settings, topic)), ...portals]
    const configs = await readConfigs(admin, [...names, rejects])
    const value = (name: string, entry: string) => bounded(configs.get(name)?.[entry])
    const partitions = await admin.fetchTopicOffsets(rejects)
    const retentionMs = value(rejects, 'retention.ms')
    const segmentMs = value(rejects, 'segment.ms')
    return {
      topics: names.map(name => ({
        name,
        compactionMs: value(name, 'max.compaction.lag.ms'),
        isPortals: portals.includes(name),
      })),
      rejects: {
        name: rejects,
        messages: partitions.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0),
        isUnused: partitions.every(({ high }) => Number(high) === 0),
        // A segment is deleted as a whole, so its first message is as old as the segment when its last one expires.
        keptMs: retentionMs === null || segmentMs === null ? null : retentionMs + segmentMs,
      },
    }
  } finally {
    await admin.disconnect()
  }
}

async function deleteMessages(admin: Admin, topic: string): Promise<void> {
  const partitions = (await admin.fetchTopicOffsets(topic))
    .filter(({ low, high }) => low !== high)
    .map(({ partition }) => ({ partition, offset: endOffset }))
  if (partitions.length > 0) await admin.deleteTopicRecords({ topic, partitions })
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
