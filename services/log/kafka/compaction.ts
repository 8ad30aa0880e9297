/**
 * How the topics are compacted. A projector that is away for longer than a topic keeps its tombstones may miss a deletion
 * without any sign: both the state and its tombstone are gone from the log, and the tables still have the state.
 */
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { isOutage, topicName } from './client.ts'
import { loadKafkajs } from './library.ts'
import type { Cluster } from './offsets.ts'

export interface TopicCompaction {
  topic: Topic
  /** The topic's name in the cluster. */
  name: string
  /** `cleanup.policy`; undefined if the settings cannot be read. */
  policy: string | undefined
  /** `delete.retention.ms`; Kafka's default if the settings cannot be read. */
  tombstoneRetentionMs: number
  /** Why the settings cannot be read. */
  unreadable?: string
}

const defaultRetentionMs = 24 * 3_600_000

/** One for each topic. Throws if the cluster is away; settings that may not be read are reported as unreadable. */
export async function readCompaction({ admin, names }: Cluster): Promise<TopicCompaction[]> {
  const named = topics.map(topic => ({ topic, name: topicName(names, topic) }))
  const type = loadKafkajs().ConfigResourceTypes.TOPIC
  try {
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: named.map(({ name }) => ({ type, name })),
    })
    return named.map(({ topic, name }) => {
      const entries = resources.find(({ resourceName }) => resourceName === name)?.configEntries ?? []
      const settingOf = (entry: string) => entries.find(({ configName }) => configName === entry)?.configValue
      return {
        topic,
        name,
        policy: settingOf('cleanup.policy'),
        tombstoneRetentionMs: Number(settingOf('delete.retention.ms') ?? defaultRetentionMs),
      }
    })
  } catch (error) {
    if (isOutage(error)) throw error
    const unreadable = messageOf(error)
    return named.map(at => ({
      ...at,
      policy: undefined,
      tombstoneRetentionMs: defaultRetentionMs,
      unreadable,
    }))
  }
}

/** What an operator should change, one line for each fault. `retentionMsMin`: the shortest time for tombstones. Pure. */
export function compactionWarnings(compaction: readonly TopicCompaction[], retentionMsMin: number): string[] {
  return compaction.flatMap(({ name, policy, tombstoneRetentionMs, unreadable }) => {
    if (unreadable !== undefined) {
      return [`the settings of the topic ${name} cannot be read (${unreadable}), so ${day} is assumed`]
    }
    const isShort = tombstoneRetentionMs < retentionMsMin
    return [
      ...(isShort
        ? [
            `the topic ${name} keeps tombstones for ${durationOf(tombstoneRetentionMs)} ` +
              `(delete.retention.ms=${tombstoneRetentionMs}), less than ${durationOf(retentionMsMin)} ` +
              '(PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS): a projector that is away longer needs a rebuild',
          ]
        : []),
      ...(policy === 'compact'
        ? []
        : [
            `the topic ${name} has cleanup.policy=${policy} instead of compact: it may lose states that no later ` +
              'event repeats',
          ]),
    ]
  })
}

const day = `delete.retention.ms=${defaultRetentionMs}`

/** In days, hours or seconds, with at most one digit after the point. */
export function durationOf(ms: number): string {
  const [unit, unitMs] =
    ms >= 48 * 3_600_000
      ? (['days', 24 * 3_600_000] as const)
      : ms >= 2 * 3_600_000
        ? (['hours', 3_600_000] as const)
        : (['s', 1_000] as const)
  return `${Number((ms / unitMs).toFixed(1))} ${unit}`
}
