/**
 * How long the projectors were away, compared with how long the topics keep tombstones.
 *
 * The positions say until when each partition was read (positions.ts). At the start of a run, a partition that has records to read, and
 * that was last read longer ago than its topic keeps tombstones, may have lost deletions. Then the tables may show what was deleted,
 * and only a rebuild can tell. So the projector refuses to go on.
 */
import { isChangeTopic } from '../../../contracts/events/event.ts'
import type { KafkaInspector } from '../../log/kafka/inspector.ts'
import { compactionWarnings, durationOf, type TopicCompaction } from '../../log/kafka/topic-settings.ts'
import { type PartitionLag, partitionName } from '../../log/port.ts'

/** The projectors were away for so long that deletions may be lost. The message says how to go on. */
export class AwayTooLong extends Error {
  override name = 'AwayTooLong'
}

export interface Compaction {
  warnings: string[]
  topics: TopicCompaction[]
}

export interface AbsenceSettings {
  /** Until when a partition was read, Unix ms. It is asked after the group. */
  readUntil: (place: string) => number
  /** Unix ms. */
  now: () => number
  retentionMsMin: number
}

/** Reads the settings of the topics. Throws `AwayTooLong` if deletions may be lost. */
export async function checkAbsence(
  inspector: Pick<KafkaInspector, 'group' | 'compaction'>,
  { readUntil, now, retentionMsMin }: AbsenceSettings,
): Promise<Compaction> {
  const topics = await inspector.compaction()
  const { lag } = await inspector.group()
  const faults = absenceFaults({ lag, topics, readUntil, now: now() })
  if (faults.length > 0) throw new AwayTooLong(`${faults.join('\n')}\n${risk} ${wayOn}`)
  return { warnings: compactionWarnings(topics, retentionMsMin), topics }
}

const risk = 'Deletions from that time may be gone from the log, so the tables may show what was deleted.'

const wayOn =
  'Run pledgeview rebuild, and then start again. Append no older events before: they may bring back what was deleted. If the ' +
  'rebuild names campaigns, pledges or keys that only the live tables have, they were deleted meanwhile: run it with ' +
  '--accept-loss. If a shard has several replicas, fill another cluster instead (deploy/grow.md, "Another number of shards")'

/** A line for each topic in which deletions may be lost. Pure. */
export function absenceFaults({
  lag,
  topics,
  readUntil,
  now,
}: {
  lag: readonly PartitionLag[]
  topics: readonly TopicCompaction[]
  readUntil: (place: string) => number
  now: number
}): string[] {
  return topics.flatMap(({ topic, name, tombstoneRetentionMs }) => {
    // The deletion of an account is a state, which compaction keeps.
    if (!isChangeTopic(topic)) return []
    const waiting = lag.filter(at => at.topic === topic && at.committed < at.end)
    const awayMs = Math.max(0, ...waiting.map(at => now - readUntil(partitionName(at))))
    if (awayMs <= tombstoneRetentionMs) return []
    return [
      `the projectors were away from the topic ${name} for ${durationOf(awayMs)}, and it keeps tombstones for only ` +
        `${durationOf(tombstoneRetentionMs)} (delete.retention.ms=${tombstoneRetentionMs}).`,
    ]
  })
}
