/**
 * Whether the tables have everything that the consumer group has committed.
 *
 * A projector commits a position only after the batch log has it. So a group that is ahead of the tables has committed it on other
 * tables: these were restored from an older backup, or are new. Without this look, the events in between would be skipped, and
 * deletions among them would be undone. The projector then reads them again, which changes nothing that the tables have.
 *
 * Both sides of the comparison are durable records: the group's offsets, and what batches and notes claim. Before a projector reads
 * anything, it notes with what these tables began (`noteBeginning`): nothing, or what an earlier version had read. After that note
 * a partition without a claim is one that the tables have nothing of, whatever rows they have. So a kill, or a projector that joins
 * later, finds the same answer as the first start.
 *
 * It goes back a day further than the tables' last position (`marginHours`), because a backup copies one
 * table after the other: the batch log in it may be newer than the ledgers and the read tables.
 *
 * What it does not see (a group that was never used is right then, deploy/README.md): a restore under running projectors; a backup
 * from before the upgrade to a version with this note, for a partition without a batch in its last 30 days; one shard of a cluster
 * that was restored alone; a topic that was made anew, or another topic prefix, under the same names of partitions; and a batch
 * between the copies of two tables, if its partitions have had no event since.
 */
import type { Topic } from '../../contracts/events/event.ts'
import type { Behind, FindBehind } from '../shared/event-log/kafka/offsets.ts'
import type { Position } from '../shared/event-log/port.ts'
import type { Databases, Statement, Tables } from '../shared/tables/port.ts'
import { writeNote } from './projector-log.ts'

/** The highest position that batches and notes claim for one partition. Everything before `next` is in the tables. */
export interface Claim {
  /** As `topic/partition`. */
  place: string
  next: number
  /** The last hour in which that was claimed, since 1970. */
  hour: number
}

/** What the tables say of one partition. */
export interface RecordedPosition {
  /** Everything before it is in the tables, as far as the tables know. */
  recorded: number
  /** What they had recorded `marginHours` before they last recorded that; 0: nothing. */
  certain: number
}

/** Where to look for claims. */
interface Source {
  databases: Databases
  group: string
}

export const marginHours = 24
// Each run notes its positions every hour, and batches do so all the time. So this finds all that is up to date.
const recentHours = 3
const dayHours = 24
// The batch log forgets after a month.
const batchDays = 31

/**
 * `group`: the consumer group that commits the positions. It changes nothing. Throws `TablesError`. Each statement returns
 * one row for a partition, with what the batch log has of at most a day.
 */
export function findBehindIn(tables: Pick<Tables, 'rows'>, databases: Databases, group: string): FindBehind {
  const source = { databases, group }
  return async committed => {
    const claims = await readClaims(tables, source, committed)
    const ahead = [...committed].filter(([place, next]) => (claims.get(place)?.next ?? -1) < next)
    if (ahead.length === 0) return new Map()
    const doubtful = ahead.flatMap(([place]) => claims.get(place) ?? [])
    const certain = await readCertain(tables, source, doubtful)
    const recorded = new Map(
      doubtful.map(({ place, next }) => [place, { recorded: next, certain: certain.get(place) ?? 0 }]),
    )
    return behindOf(new Map(ahead), recorded, await readHistory(tables, databases))
  }
}

/**
 * Notes once with what these tables began. It must be durable before anything is read: ledger rows without this note are those of an
 * earlier version, which noted nothing, so what its group has committed is in the tables. `committed`: all that the group has
 * committed. Throws `TablesError`.
 */
export async function noteBeginning(
  tables: Pick<Tables, 'rows' | 'insert'>,
  databases: Databases,
  projector: string,
  { group, committed }: { group: string; committed: ReadonlyMap<string, number> },
): Promise<void> {
  const { isFilled, hasBegun } = await readHistory(tables, databases)
  if (hasBegun) return
  const claims = isFilled
    ? await readClaims(tables, { databases, group }, committed)
    : new Map<string, Claim>()
  const claimed = new Map([...claims.values()].map(({ place, next }) => [place, next]))
  const positions = [...believedOf(committed, claimed, isFilled)].map(([place, next]) =>
    positionOf(place, next),
  )
  await writeNote(tables, databases, projector, { kind: 'began', detail: { positions, group } })
}

/**
 * How far an earlier version of the program had read, as far as the tables have it. The batch log keeps a partition's position for 30
 * days after its last event. So a position that the log does not have, or will soon lose, is noted. New tables have nothing. Pure.
 */
export function believedOf(
  committed: ReadonlyMap<string, number>,
  claimed: ReadonlyMap<string, number>,
  isFilled: boolean,
): Map<string, number> {
  const isBelieved = ([place, next]: [string, number]) => (claimed.get(place) ?? next) >= next
  return new Map(isFilled ? [...committed].filter(isBelieved) : [])
}

function positionOf(place: string, next: number): Position {
  const [topic = '', partition] = place.split('/')
  return { topic: topic as Topic, partition: Number(partition), next }
}

/** What is known of the tables' past. */
export interface RecordHistory {
  /** Whether the ledger has anything. */
  isFilled: boolean
  /** Whether a projector has noted with what they began. An earlier version does not. */
  hasBegun: boolean
}

/** The partitions in which the group is ahead of the tables. Pure. */
export function behindOf(
  committed: ReadonlyMap<string, number>,
  recorded: ReadonlyMap<string, RecordedPosition>,
  { isFilled, hasBegun }: RecordHistory,
): Map<string, Behind> {
  const behind = new Map<string, Behind>()
  for (const [place, next] of committed) {
    const at = recorded.get(place)
    if (at && at.recorded < next) behind.set(place, { recorded: at.recorded, from: at.certain })
    // Before the first start of this version, what an earlier one has committed is believed (`believedOf`).
    else if (!at && (hasBegun || !isFilled)) behind.set(place, { from: 0 })
  }
  return behind
}

/** The claims, by place. It looks back only until the tables have all that the group has committed. */
async function readClaims(
  tables: Pick<Tables, 'rows'>,
  { databases, group }: Source,
  committed: ReadonlyMap<string, number>,
): Promise<Map<string, Claim>> {
  const highest = new Map<string, Claim>()
  const isUpToDate = () => [...committed].every(([place, next]) => (highest.get(place)?.next ?? -1) >= next)
  const recent = [batchesIn(databases, recentHours, 0), notesIn(databases, group, recentHours)]
  for (const { query, query_params } of [...recent, ...allIn({ databases, group })]) {
    if (isUpToDate()) return highest
    const found = await tables.rows<Claim>({
      query: `SELECT place, max(claimed) AS next, argMax(said, (claimed, said)) AS hour FROM (${byHour(query)}) GROUP BY place`,
      ...(query_params && { query_params }),
    })
    for (const claim of found) highest.set(claim.place, higher(claim, highest.get(claim.place)))
  }
  return highest
}

function higher(one: Claim, other: Claim | undefined): Claim {
  if (!other || one.next > other.next) return one
  return one.next < other.next || one.hour < other.hour ? other : one
}

/** What was claimed for these places until `marginHours` before the given claim. */
async function readCertain(
  tables: Pick<Tables, 'rows'>,
  source: Source,
  claims: readonly Claim[],
): Promise<Map<string, number>> {
  const certain = new Map<string, number>()
  if (claims.length === 0) return certain
  const bounds = {
    places: claims.map(({ place }) => place),
    until: claims.map(({ hour }) => Math.max(0, hour - marginHours)),
  }
  for (const { query, query_params } of allIn(source)) {
    const found = await tables.rows<Pick<Claim, 'place' | 'next'>>({
      query: `SELECT place, max(claimed) AS next FROM (${byHour(query)})
              WHERE said < transform(place, {places:Array(String)}, {until:Array(UInt32)}, toUInt32(0)) GROUP BY place`,
      query_params: { ...query_params, ...bounds },
    })
    for (const { place, next } of found) certain.set(place, Math.max(next, certain.get(place) ?? 0))
  }
  return certain
}

/** All that is known: the notes, and the batch log day by day, the latest first. */
function allIn({ databases, group }: Source): Statement[] {
  const days = Array.from({ length: batchDays }, (_, day) =>
    batchesIn(databases, (day + 1) * dayHours, day * dayHours),
  )
  return [notesIn(databases, group), ...days]
}

/** The batches that were logged between so many hours ago. */
function batchesIn({ model }: Databases, fromHours: number, toHours: number): Statement {
  // No upper bound for the latest ones: a clock may have stepped back.
  const isOld = toHours === 0 ? 'true' : `appended_at <= now64(3, 'UTC') - INTERVAL ${toHours} HOUR`
  return {
    query: `SELECT positions, appended_at AS said_at FROM ${model}.batch_log
            WHERE appended_at > now64(3, 'UTC') - INTERVAL ${fromHours} HOUR AND ${isOld}`,
  }
}

/** Those of another group may be about topics that were made anew since. */
function notesIn({ model }: Databases, group: string, fromHours?: number): Statement {
  const isRecent =
    fromHours === undefined ? 'true' : `noted_at > now64(3, 'UTC') - INTERVAL ${fromHours} HOUR`
  return {
    query: `SELECT
              JSONExtract(detail, 'positions', 'Array(Tuple(topic String, partition UInt32, next UInt64))') AS positions,
              noted_at AS said_at
            FROM ${model}.projector_log
            WHERE kind IN ('began', 'present', 'reached') AND JSONExtractString(detail, 'group') = {group:String} AND ${isRecent}`,
    query_params: { group },
  }
}

/** From `positions` and `said_at`: what was claimed for each place in each hour. */
function byHour(query: string): string {
  return `SELECT concat(at.topic, '/', toString(at.partition)) AS place, max(at.next) AS claimed,
            intDiv(toUnixTimestamp(said_at), 3600) AS said
          FROM (${query}) ARRAY JOIN positions AS at
          GROUP BY at.topic, at.partition, said`
}

/**
 * The ledgers come first. If another projector fills them at this moment, its note is there before its rows, so they never look
 * like those of an earlier version. After 400 days the note is gone; then the positions that projectors note say the same.
 */
async function readHistory(tables: Pick<Tables, 'rows'>, { model }: Databases): Promise<RecordHistory> {
  const [ledgers] = await tables.rows<{ filled: number }>({
    query: `SELECT
              (SELECT count() FROM (SELECT 1 FROM ${model}.campaign_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.pledge_ledger LIMIT 1)) +
              (SELECT count() FROM (SELECT 1 FROM ${model}.api_key_ledger LIMIT 1)) AS filled`,
  })
  const [notes] = await tables.rows<{ noted: number }>({
    query: `SELECT count() AS noted FROM (SELECT 1 FROM ${model}.projector_log
            WHERE kind = 'began' OR (kind = 'present' AND JSONHas(detail, 'positions')) LIMIT 1)`,
  })
  return { isFilled: (ledgers?.filled ?? 0) > 0, hasBegun: (notes?.noted ?? 0) > 0 }
}

/** A line for the log. */
export function describeBehind(place: string, committed: number, { recorded, from }: Behind): string {
  const has = recorded === undefined ? 'nothing' : `everything before ${recorded}`
  return (
    `the consumer group is at ${committed} of ${place}, but the tables have ${has}: they are new, or were restored from an older ` +
    `backup. The projector reads this partition again from ${from === 0 ? 'its start' : from}`
  )
}
