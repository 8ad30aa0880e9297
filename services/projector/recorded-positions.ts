/**
 * Whether the tables have everything that the consumer group has committed.
 *
 * A projector commits a position only after the batch log has it. So a group that is ahead of the tables has committed it on other
 * tables: these were restored from an older backup, or are new. Without this look, the events in between would be skipped, and
 * deletions among them would be undone. The projector then reads them again, which changes nothing that the tables have.
 *
 * It never refuses. It goes back a day further than the tables' last position (`marginHours`), because a backup copies one
 * table after the other: the batch log in it may be newer than the ledgers and the read tables.
 *
 * What it does not see: tables that an earlier version filled, for a partition without a batch in 30 days; and one shard of a
 * cluster that was restored alone, if the others have the batches of the same partitions.
 */
import type { Behind, FindBehind } from '../shared/event-log/kafka/offsets.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'

/** What the tables say of one partition. */
export interface RecordedPosition {
  /** As `topic/partition`. */
  place: string
  /** Everything before it is in the tables, as far as the tables know. */
  recorded: number
  /** What they had recorded `marginHours` before that; 0: nothing. */
  certain: number
}

const marginHours = 24
// Each run notes its positions every hour, and batches do so all the time. So this finds all that is up to date.
const recentHours = 3

/** `group`: the consumer group that commits the positions. Throws `TablesError`. */
export function findBehindIn(tables: Pick<Tables, 'rows'>, databases: Databases, group: string): FindBehind {
  return async committed => {
    const isUpToDate = (recorded: readonly RecordedPosition[]) => {
      const reached = new Map(recorded.map(at => [at.place, at.recorded]))
      return [...committed].every(([place, next]) => (reached.get(place) ?? -1) >= next)
    }
    // All positions are a scan of the batch log, so first those that are quickly found.
    if (isUpToDate(await readRecorded(tables, databases, { group, hours: recentHours }))) return new Map()
    const recorded = await readRecorded(tables, databases, { group })
    if (isUpToDate(recorded)) return new Map()
    return behindOf(committed, recorded, await readHistory(tables, databases))
  }
}

/** What is known of the tables' past. */
export interface RecordHistory {
  /** Whether the ledger has anything. */
  isFilled: boolean
  /** Whether positions have been noted for a day, by all projectors. An earlier version notes none. */
  areNoted: boolean
}

/** The partitions in which the group is ahead of the tables. Pure. */
export function behindOf(
  committed: ReadonlyMap<string, number>,
  recorded: readonly RecordedPosition[],
  { isFilled, areNoted }: RecordHistory,
): Map<string, Behind> {
  const known = new Map(recorded.map(at => [at.place, at]))
  const behind = new Map<string, Behind>()
  for (const [place, next] of committed) {
    const at = known.get(place)
    if (at && at.recorded < next) behind.set(place, { recorded: at.recorded, from: at.certain })
    // The batch log of an earlier version forgets a quiet partition after 30 days.
    else if (!at && (areNoted || !isFilled)) behind.set(place, { from: 0 })
  }
  return behind
}

/** The recorded positions of all partitions. `hours`: only what was recorded in this time. */
export function readRecorded(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  { group, hours }: { group: string; hours?: number },
): Promise<RecordedPosition[]> {
  const isInTime = (column: string) =>
    hours === undefined ? 'true' : `${column} > now64(3, 'UTC') - INTERVAL ${hours} HOUR`
  // Notes of another group may be about topics that were made anew since.
  const claims = `
    SELECT concat(at.topic, '/', toString(at.partition)) AS place, at.next AS next, appended_at AS noted_at
    FROM (SELECT positions, appended_at FROM ${model}.batch_log WHERE ${isInTime('appended_at')}) ARRAY JOIN positions AS at
    UNION ALL
    SELECT concat(at.topic, '/', toString(at.partition)) AS place, at.next AS next, noted_at
    FROM
    (
        SELECT noted_at,
            JSONExtract(detail, 'positions', 'Array(Tuple(topic String, partition UInt32, next UInt64))') AS positions
        FROM ${model}.projector_log
        WHERE kind IN ('present', 'reached') AND JSONExtractString(detail, 'group') = {group:String} AND ${isInTime('noted_at')}
    )
    ARRAY JOIN positions AS at`
  return tables.rows<RecordedPosition>({
    query: `WITH highest AS
            (
                SELECT place, max((next, noted_at)) AS latest FROM (${claims}) GROUP BY place
            )
            SELECT place, any(latest.1) AS recorded,
                maxIf(next, noted_at < latest.2 - INTERVAL ${marginHours} HOUR) AS certain
            FROM (${claims}) AS claim INNER JOIN highest USING (place)
            GROUP BY place ORDER BY place`,
    query_params: { group },
  })
}

async function readHistory(tables: Pick<Tables, 'rows'>, { model }: Databases): Promise<RecordHistory> {
  const [found] = await tables.rows<{ noted: number; filled: number }>({
    query: `SELECT
              (SELECT count() FROM ${model}.projector_log WHERE kind = 'present' AND JSONHas(detail, 'positions')
                AND noted_at < now64(3, 'UTC') - INTERVAL ${marginHours} HOUR) AS noted,
              (SELECT count() FROM (SELECT 1 FROM ${model}.campaign_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.pledge_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.api_key_ledger LIMIT 1)) AS filled`,
  })
  return { isFilled: (found?.filled ?? 0) > 0, areNoted: (found?.noted ?? 0) > 0 }
}

/** A line for the log. */
export function describeBehind(place: string, committed: number, { recorded, from }: Behind): string {
  const has = recorded === undefined ? 'nothing' : `everything before ${recorded}`
  return (
    `the consumer group is at ${committed} of ${place}, but the tables have ${has}: they are new, or were restored from an older ` +
    `backup. The projector reads this partition again from ${from === 0 ? 'its start' : from}`
  )
}
