/**
 * Notes how far the partitions of this projector are read, also while nothing comes, so that a later start knows how long the projectors
 * were away (`checkAbsence`). On a busy partition the lag is never zero. So it remembers the end of the partition at one moment, and notes the
 * time once that offset is read.
 */

import { isChangeTopic } from '../../../contracts/events/event.ts'
import type { KafkaInspector } from '../../log/kafka/inspector.ts'
import { compactionWarnings, durationOf, type TopicCompaction } from '../../log/kafka/topic-settings.ts'
import { type EventReader, type PartitionLag, partitionName } from '../../log/port.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Positions } from './positions.ts'

interface LastReadDependencies
  extends Pick<EventReader, 'lag'>,
    Pick<Positions, 'noteRead'>,
    Pick<Runtime, 'monotonicMs' | 'now'> {
  /** Reading the lag or writing the note failed. It is tried again. */
  onFailure: (error: Error) => void
  /** How often it is noted, ms. */
  intervalMs: number
}

const lookMs = 1_000

export function createLastRead({
  lag,
  noteRead,
  onFailure,
  intervalMs,
  monotonicMs,
  now,
}: LastReadDependencies) {
  let target: { ends: ReadonlyMap<string, number>; at: number } | undefined
  let nextAt = Number.NEGATIVE_INFINITY
  let looking: Promise<void> | undefined

  async function look(): Promise<void> {
    const at = now()
    const present = await lag()
    const isSame = target !== undefined && present.every(one => target?.ends.has(partitionName(one)))
    // After a rebalance there are other partitions, so it begins again.
    if (!target || !isSame) target = { ends: new Map(present.map(one => [partitionName(one), one.end])), at }
    const { ends } = target
    if (!present.every(one => one.committed >= (ends.get(partitionName(one)) ?? 0))) return
    await noteRead(present.map(partitionName), target.at)
    target = undefined
    nextAt = monotonicMs() + intervalMs
  }

  return {
    /** The loop made a turn. Does the work beside the loop, and at most once a second. */
    turn(): void {
      if (looking || monotonicMs() < nextAt) return
      nextAt = monotonicMs() + lookMs
      looking = look()
        .catch(onFailure)
        .finally(() => {
          looking = undefined
        })
    },
    /** Waits for what is under way. */
    async close(): Promise<void> {
      await looking
    },
  }
}

/*
 * How long the projectors were away, compared with how long the topics keep tombstones.
 *
 * The positions say until when each partition was read (positions.ts). At the start of a run, a partition that has records to read, and
 * that was last read longer ago than its topic keeps tombstones, may have lost deletions. Then the tables may show what was deleted,
 * and only a rebuild can tell. So the projector refuses to go on.
 */

export type Compaction = Awaited<ReturnType<typeof checkAbsence>>

/**
 * Reads the settings of the topics. Throws if deletions may be lost. `agoMs`: how long ago a partition was read, ms. It is asked after the
 * group.
 */
export async function checkAbsence(
  inspector: Pick<KafkaInspector, 'group' | 'compaction'>,
  { agoMs, retentionMsMin }: { agoMs: (place: string) => number; retentionMsMin: number },
) {
  const topics = await inspector.compaction()
  const { lag } = await inspector.group()
  const faults = absenceFaults(lag, topics, agoMs)
  if (faults.length > 0) throw new Error(`${faults.join('\n')}\n${risk} ${wayOn}`)
  return { warnings: compactionWarnings(topics, retentionMsMin), topics }
}

const risk = 'Deletions from that time may be gone from the log, so the tables may show what was deleted.'

const wayOn =
  'Run pledgeview rebuild, and then start again. Append no older events before: they may bring back what was deleted. If the ' +
  'rebuild names campaigns, pledges or keys that only the live tables have, they were deleted meanwhile: run it with ' +
  '--accept-loss'

/** A line for each topic in which deletions may be lost. `agoMs`: how long ago a partition was read. Pure. */
export function absenceFaults(
  lag: readonly PartitionLag[],
  topics: readonly TopicCompaction[],
  agoMs: (place: string) => number,
): string[] {
  return topics.flatMap(({ topic, name, tombstoneRetentionMs }) => {
    // The deletion of an account is a state, which compaction keeps.
    if (!isChangeTopic(topic)) return []
    const waiting = lag.filter(at => at.topic === topic && at.committed < at.end)
    const awayMs = Math.max(0, ...waiting.map(at => agoMs(partitionName(at))))
    if (awayMs <= tombstoneRetentionMs) return []
    return [
      `the projectors were away from the topic ${name} for ${durationOf(awayMs)}, and it keeps tombstones for only ` +
        `${durationOf(tombstoneRetentionMs)} (delete.retention.ms=${tombstoneRetentionMs}).`,
    ]
  })
}
