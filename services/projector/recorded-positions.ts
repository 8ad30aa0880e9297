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
 * What it does not see (a group that was never used is right then, deploy/README.md): a restore under running projectors; tables that
 * an earlier version filled, for a partition without a batch in 30 days; one shard of a cluster that was restored alone; a topic
 * that was made anew; and a batch between the copies of two tables, if its partitions have had no event since.
 */
import type { Behind, FindBehind } from '../shared/event-log/kafka/offsets.ts'
import type { Databases, Statement, Tables } from '../shared/tables/port.ts'

/** A batch or a note said in this hour that everything before `next` is in the tables. */
export interface Claim {
  /** As `topic/partition`. */
  place: string
  next: number
  /** Since 1970. */
  hour: number
}

/** What the tables say of one partition. */
export interface RecordedPosition {
  /** Everything before it is in the tables, as far as the tables know. */
  recorded: number
  /** What they had recorded `marginHours` before they recorded that; 0: nothing. */
  certain: number
}

const marginHours = 24
// Each run notes its positions every hour, and batches do so all the time. So this finds all that is up to date.
const recentHours = 3
const dayHours = 24
// The batch log forgets after a month.
const batchDays = 31

/**
 * `group`: the consumer group that commits the positions. Throws `TablesError`. The batch log is read day by day, the latest first,
 * so that no statement is long, and only as far as needed.
 */
export function findBehindIn(tables: Pick<Tables, 'rows'>, databases: Databases, group: string): FindBehind {
  return async committed => {
    const claims = await readBatches(tables, databases, { fromHours: recentHours, toHours: 0 })
    claims.push(...(await readNotes(tables, databases, { group, fromHours: recentHours })))
    if (isUpToDate(committed, claims)) return new Map()
    claims.push(...(await readNotes(tables, databases, { group })))
    for (let day = 0; day < batchDays; day++) {
      const [fromHours, toHours] = [(day + 1) * dayHours, day * dayHours]
      claims.push(...(await readBatches(tables, databases, { fromHours, toHours })))
      if (isUpToDate(committed, claims)) return new Map()
    }
    return behindOf(committed, recordedOf(claims), await readHistory(tables, databases))
  }
}

/** Pure. */
export function recordedOf(claims: readonly Claim[]): Map<string, RecordedPosition> {
  return new Map(
    [...Map.groupBy(claims, ({ place }) => place)].map(([place, ofPlace]) => {
      const recorded = highest(ofPlace)
      const saidAt = ofPlace.reduce(
        (latest, { next, hour }) => (next === recorded ? Math.max(latest, hour) : latest),
        Number.NEGATIVE_INFINITY,
      )
      return [
        place,
        { recorded, certain: highest(ofPlace.filter(({ hour }) => hour < saidAt - marginHours)) },
      ]
    }),
  )
}

function highest(claims: readonly Claim[]): number {
  return claims.reduce((most, { next }) => Math.max(most, next), 0)
}

function isUpToDate(committed: ReadonlyMap<string, number>, claims: readonly Claim[]): boolean {
  const recorded = recordedOf(claims)
  return [...committed].every(([place, next]) => (recorded.get(place)?.recorded ?? -1) >= next)
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
  recorded: ReadonlyMap<string, RecordedPosition>,
  { isFilled, areNoted }: RecordHistory,
): Map<string, Behind> {
  const behind = new Map<string, Behind>()
  for (const [place, next] of committed) {
    const at = recorded.get(place)
    if (at && at.recorded < next) behind.set(place, { recorded: at.recorded, from: at.certain })
    // The batch log of an earlier version forgets a quiet partition after 30 days.
    else if (!at && (areNoted || !isFilled)) behind.set(place, { from: 0 })
  }
  return behind
}

/** What the batches claim, by hour, that were logged between so many hours ago. */
export function readBatches(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  { fromHours, toHours }: { fromHours: number; toHours: number },
): Promise<Claim[]> {
  // No upper bound for the latest ones: a clock may have stepped back.
  const isOld = toHours === 0 ? 'true' : `appended_at <= now64(3, 'UTC') - INTERVAL ${toHours} HOUR`
  return readClaims(tables, {
    query: `SELECT positions, appended_at AS said_at FROM ${model}.batch_log
            WHERE appended_at > now64(3, 'UTC') - INTERVAL ${fromHours} HOUR AND ${isOld}`,
  })
}

/** What the notes claim. Those of another group may be about topics that were made anew since. */
export function readNotes(
  tables: Pick<Tables, 'rows'>,
  { model }: Databases,
  { group, fromHours }: { group: string; fromHours?: number },
): Promise<Claim[]> {
  const isRecent =
    fromHours === undefined ? 'true' : `noted_at > now64(3, 'UTC') - INTERVAL ${fromHours} HOUR`
  return readClaims(tables, {
    query: `SELECT
              JSONExtract(detail, 'positions', 'Array(Tuple(topic String, partition UInt32, next UInt64))') AS positions,
              noted_at AS said_at
            FROM ${model}.projector_log
            WHERE kind IN ('present', 'reached') AND JSONExtractString(detail, 'group') = {group:String} AND ${isRecent}`,
    query_params: { group },
  })
}

/** `positions` and `said_at`, by hour. */
function readClaims(tables: Pick<Tables, 'rows'>, { query, query_params }: Statement): Promise<Claim[]> {
  return tables.rows<Claim>({
    query: `SELECT concat(at.topic, '/', toString(at.partition)) AS place, max(at.next) AS next,
              intDiv(toUnixTimestamp(toStartOfHour(said_at)), 3600) AS hour
            FROM (${query}) ARRAY JOIN positions AS at
            GROUP BY at.topic, at.partition, hour`,
    ...(query_params && { query_params }),
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
