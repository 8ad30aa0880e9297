/**
 * Reads the settings of the topics, and warns if deletions can be lost. A projector that is away for longer than a topic keeps
 * its tombstones may miss a deletion without any sign: both the state and its tombstone are gone from the log, and the tables still
 * have the state. A purge says how long the log keeps what was replaced.
 */

import type { Admin } from 'kafkajs'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { dayMs } from '../../runtime/runtime.ts'
import { isOutage, topicName } from './client.ts'
import type { Cluster } from './offsets.ts'
import { loadKafkajs } from './repairs/library.ts'

/** By the names of the topics: the value of each setting by its name. */
export async function readTopicSettings(
  admin: Pick<Admin, 'describeConfigs'>,
  names: readonly string[],
): Promise<Map<string, Record<string, string | undefined>>> {
  const type = loadKafkajs().ConfigResourceTypes.TOPIC
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map(name => ({ type, name })),
  })
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      Object.fromEntries(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  )
}

// Kafka's value for "never" is the largest 64-bit number. No operator means a longer time than this.
const boundMsMax = 1_000 * 365 * dayMs

export interface TopicCompaction {
  topic: Topic
  /** The topic's name in the cluster. */
  name: string
  /** `cleanup.policy`; undefined if the settings cannot be read. */
  policy: string | undefined
  /** `delete.retention.ms`; Kafka's default if the settings cannot be read. */
  tombstoneRetentionMs: number
  /** `max.compaction.lag.ms`: how long a replaced record may wait; null: without bound, or not known. */
  compactionLagMs: number | null
  /** Why the settings cannot be read. */
  unreadable?: string
}

const defaultRetentionMs = 24 * 3_600_000

/** One for each topic. Throws if the cluster is away; settings that may not be read are reported as unreadable. */
export async function readCompaction({ admin, names }: Cluster): Promise<TopicCompaction[]> {
  const named = topics.map(topic => ({ topic, name: topicName(names, topic) }))
  const asked = readTopicSettings(
    admin,
    named.map(({ name }) => name),
  )
  const found = await asked.catch(error => {
    if (isOutage(error)) throw error
    return messageOf(error)
  })
  return named.map(at => {
    const settings = typeof found === 'string' ? undefined : found.get(at.name)
    const lagMs = Number(settings?.['max.compaction.lag.ms'] ?? Number.NaN)
    return {
      ...at,
      policy: settings?.['cleanup.policy'],
      tombstoneRetentionMs: Number(settings?.['delete.retention.ms'] ?? defaultRetentionMs),
      compactionLagMs: lagMs >= 0 && lagMs < boundMsMax ? lagMs : null,
      ...(typeof found === 'string' && { unreadable: found }),
    }
  })
}

/** What an operator should change, one line for each fault. `retentionMsMin`: the shortest time for tombstones. Pure. */
export function compactionWarnings(compaction: readonly TopicCompaction[], retentionMsMin: number): string[] {
  return compaction.flatMap(({ name, policy, tombstoneRetentionMs, unreadable }) => {
    if (unreadable !== undefined) {
      return [`the settings of the topic ${name} cannot be read (${unreadable}), so ${day} is assumed`]
    }
    const faults: string[] = []
    if (tombstoneRetentionMs < retentionMsMin)
      faults.push(
        `the topic ${name} keeps tombstones for ${durationOf(tombstoneRetentionMs)} ` +
          `(delete.retention.ms=${tombstoneRetentionMs}), less than ${durationOf(retentionMsMin)} ` +
          '(PLEDGEVIEW_KAFKA_TOMBSTONE_RETENTION_MS): a projector that is away longer needs a rebuild',
      )
    if (policy !== 'compact')
      faults.push(
        `the topic ${name} has cleanup.policy=${policy} instead of compact: it may lose states that no later ` +
          'event repeats',
      )
    return faults
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
