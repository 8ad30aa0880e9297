/**
 * How long the projectors were away, compared with how long the topics keep tombstones.
 *
 * While they run, they note when they had read their partitions to the end. At the start of a run, a partition that has
 * records to read and whose last note is older than its topic keeps tombstones may have lost deletions. Then the tables
 * may show what was deleted, and only a rebuild can tell. So the projector refuses to go on.
 *
 * Tables of an earlier version have no notes. The time since their last batch is no absence: a quiet platform has no batches.
 * So before the first note the projector only warns.
 */
import { compactionWarnings, durationOf, type TopicCompaction } from '../shared/event-log/kafka/compaction.ts'
import type { KafkaInspector } from '../shared/event-log/kafka/inspector.ts'
import type { PartitionLag } from '../shared/event-log/port.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'

/** The projectors were away for so long that deletions may be lost. The message says how to go on. */
export class AwayTooLong extends Error {
  override name = 'AwayTooLong'
}

/** When the tables had everything of a partition, as far as this is known. */
export interface LastPresence {
  /** Ms ago, by `topic/partition`. */
  msAgo: Readonly<Record<string, number>>
  /** Whether any projector has noted its presence. Only then is an absence known. */
  isNoted: boolean
  /** For other partitions: ms since the last batch; null if no batch is known. */
  lastBatchMsAgo: number | null
  /** Whether the ledger has anything. */
  isFilled: boolean
}

export interface Compaction {
  warnings: string[]
  topics: TopicCompaction[]
}

export interface AbsenceSettings {
  tables: Tables
  databases: Databases
  retentionMsMin: number
}

/** Reads the settings of the topics. Throws `AwayTooLong` if deletions may be lost. */
export async function checkAbsence(
  inspector: Pick<KafkaInspector, 'group' | 'compaction'>,
  { tables, databases, retentionMsMin }: AbsenceSettings,
): Promise<Compaction> {
  const topics = await inspector.compaction()
  // The lag comes first. What is appended meanwhile is not older than the presence.
  const { lag } = await inspector.group()
  const last = await readLastPresence(tables, databases)
  const faults = absenceFaults({ lag, topics, last })
  const warnings = compactionWarnings(topics, retentionMsMin)
  if (faults.length === 0) return { warnings, topics }
  if (last.isNoted) throw new AwayTooLong(`${faults.join('\n')}\n${risk} ${wayOn}`)
  return { warnings: [...warnings, ...faults.map(unsure)], topics }
}

const risk = 'Deletions from that time may be gone from the log, so the tables may show what was deleted.'

const wayOn =
  'Run pledgeview rebuild without --from-file, and then start again. If the rebuild names campaigns, pledges or keys that ' +
  'only the live tables have, they were deleted meanwhile: run it with --accept-loss. If a shard has several replicas, replay ' +
  'the log into another cluster instead, and then point the query processes to it (deploy/README.md, "Rebuild, distributed")'

function unsure(fault: string): string {
  return (
    `${fault} This is the time since the last batch, because an earlier version did not note its presence. If the projectors ` +
    'were really away for so long, rebuild the tables'
  )
}

/** A line for each topic in which deletions may be lost. Pure. */
export function absenceFaults({
  lag,
  topics,
  last,
}: {
  lag: readonly PartitionLag[]
  topics: readonly TopicCompaction[]
  last: LastPresence
}): string[] {
  return topics.flatMap(({ topic, name, tombstoneRetentionMs }) => {
    const waiting = lag.filter(at => at.topic === topic && at.committed < at.end)
    const awayMs = Math.max(0, ...waiting.map(at => awayMsOf(at, last)))
    if (awayMs <= tombstoneRetentionMs) return []
    const away = awayMs === Number.POSITIVE_INFINITY ? 'an unknown time' : durationOf(awayMs)
    return [
      `the projectors were away from the topic ${name} for ${away}, and it keeps tombstones for only ` +
        `${durationOf(tombstoneRetentionMs)} (delete.retention.ms=${tombstoneRetentionMs}).`,
    ]
  })
}

function awayMsOf({ topic, partition }: PartitionLag, { msAgo, lastBatchMsAgo, isFilled }: LastPresence) {
  // Empty tables have nothing that could have been deleted.
  if (!isFilled) return 0
  // The batch log forgets after a month.
  return msAgo[`${topic}/${partition}`] ?? lastBatchMsAgo ?? Number.POSITIVE_INFINITY
}

export async function readLastPresence(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
): Promise<LastPresence> {
  const notes = await tables.rows<{ place: string; msAgo: number }>({
    query: `SELECT arrayJoin(JSONExtract(detail, 'partitions', 'Array(String)')) AS place,
              min(dateDiff('millisecond', noted_at, now64(3, 'UTC')) + JSONExtractInt(detail, 'msAgo')) AS msAgo
            FROM ${model}.projector_log WHERE kind = 'present' GROUP BY place`,
  })
  const [found] = await tables.rows<{ batches: number; msAgo: number; filled: number }>({
    query: `SELECT
              (SELECT count() FROM ${model}.batch_log) AS batches,
              (SELECT dateDiff('millisecond', max(appended_at), now64(3, 'UTC')) FROM ${model}.batch_log) AS msAgo,
              (SELECT count() FROM (SELECT 1 FROM ${model}.campaign_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.pledge_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.api_key_ledger LIMIT 1)) AS filled`,
  })
  return {
    isNoted: notes.length > 0,
    msAgo: Object.fromEntries(notes.map(({ place, msAgo }) => [place, msAgo])),
    lastBatchMsAgo: found && found.batches > 0 ? found.msAgo : null,
    isFilled: (found?.filled ?? 0) > 0,
  }
}
