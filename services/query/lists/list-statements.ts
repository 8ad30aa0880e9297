/**
 * The statements of lists, as values, and their rows. Pure: parameters and database names in, text and parameters out. Values from a
 * client are always typed placeholders, never part of the text.
 */
import type { ListParameters, Sort } from '../../../contracts/api/parameters.ts'
import { timeBound } from '../../tables/clickhouse/statements.ts'
import type { Databases, Statement } from '../../tables/port.ts'
import { digestSumSql } from './digest.ts'

export interface SnapshotRow {
  /** Joined by `idSeparator`; empty if there are none. */
  ids: string
  total: number
  as_of: string
  /** Of a list of everything: the sum of its digest. */
  digest_sum?: string
  /** Of removals: they are complete from this moment on, Unix ms. */
  kept_since?: number
}

/** Times are Unix milliseconds. */
export interface ChangesRow {
  read_at: number
  as_of: number
  ids: string[]
  /** When the campaign with the same index changed; `severalChanges` if it changed several times. */
  stamps: number[]
  /** The number of public campaigns; null if it was not asked for. */
  total: number | null
}

/**
 * The fields that lists filter and sort by. Index n of every array is the same campaign. Moments are Unix ms; `noDate`
 * if there is none.
 */
export interface EntriesRow {
  ids: string[]
  statuses: string[]
  categories: string[]
  /** The CRC-32 of each slug. */
  slug_codes: number[]
  launch_dates: number[]
  end_dates: number[]
  /** In the platform's currency. */
  pledged: number[]
  backers: number[]
  updates: number[]
}

export interface ChangedEntriesRow extends EntriesRow {
  /** The number of all public campaigns, including those that did not change; null if it was not asked for. */
  total: number | null
}

/** The parameters that define a list, without the page. */
export type ListQuery = Pick<ListParameters, 'status' | 'category' | 'sort' | 'updatedSince'>

/** Whether the list is of all campaigns, or of those of all that have changed. */
export function isOfAll({ status, category }: ListQuery): boolean {
  return status === null && category === null
}

/** The value for a missing date in `EntriesRow`, ms. */
export const noDate = -8_640_000_000_000_000

/** The value for a campaign with several changes in `ChangesRow`. No campaign in the index has this moment. */
export const severalChanges = -1

/** Separates ids in a snapshot: no campaign id contains a slash. */
export const idSeparator = '/'

/**
 * All ids that a list query matches, in order, as one string (one row per id would cost five times as much). Returns
 * one row {ids, total, as_of}. The rows are read after `as_of` is (see `watermark`).
 */
export function snapshotStatement(query: ListQuery, databases: Databases, msMax: number): Statement {
  const { status, category, sort, updatedSince } = query
  const conditions = [
    status !== null && 'status = {status:String}',
    category !== null && 'category = {category:String}',
    updatedSince !== null && "updated_at >= fromUnixTimestamp64Milli({updated_since:Int64}, 'UTC')",
  ].filter(condition => condition !== false)
  return {
    query: `SELECT
    arrayStringConcat(groupArray(campaign_id), '${idSeparator}') AS ids,
    count() AS total,
    ${isOfAll(query) && updatedSince === null ? `${digestSumSql} AS digest_sum,` : ''}
    ${watermark(databases)} AS as_of
FROM (
    SELECT campaign_id, updated_at
    FROM ${databases.read}.campaign_pages
    ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
    ORDER BY ${orders[sort]}, campaign_id
)
SETTINGS ${plainSlashes}, ${timeBound(msMax)}`,
    query_params: {
      ...(status !== null && { status }),
      ...(category !== null && { category }),
      ...(updatedSince !== null && { updated_since: updatedSince }),
    },
  }
}

/**
 * The campaigns that left since a moment (inclusive) and are still known, in the order in which they did: one row of type `SnapshotRow`.
 * Each is its Unix milliseconds, a space and its id, in place of an id. Everything is read after `as_of` and `kept_since` are.
 */
export function removalsStatement(
  since: number | null,
  { read }: Databases,
  { keptMs, msMax }: { keptMs: number; msMax: number },
): Statement {
  return {
    query: `WITH
    (SELECT toUnixTimestamp64Milli(max(updated_at)) FROM ${read}.removals WHERE campaign_id = '') AS complete_since,
    toUnixTimestamp64Milli(${watermark({ read })}) AS reached,
    greatest(complete_since, reached - {kept_ms:Int64}) AS bound
SELECT
    arrayStringConcat(groupArray(concat(toString(stamp), ' ', campaign_id)), '${idSeparator}') AS ids,
    count() AS total,
    bound AS kept_since,
    fromUnixTimestamp64Milli(reached, 'UTC') AS as_of
FROM (
    SELECT campaign_id, toUnixTimestamp64Milli(updated_at) AS stamp
    FROM ${read}.removals
    WHERE campaign_id != '' AND stamp >= greatest(bound, {since:Int64})
    ORDER BY stamp, campaign_id
)
SETTINGS ${plainSlashes}, ${timeBound(msMax)}`,
    query_params: { since: since ?? 0, kept_ms: keptMs },
  }
}

/**
 * The changes since a moment (inclusive), for the list index: one row of type `ChangesRow`. It returns at most `idsMax`
 * ids, including campaigns that are no longer public. Everything is read after `read_at` (ClickHouse's clock) and `as_of`.
 */
export function campaignChangesStatement(
  since: number,
  databases: Databases,
  { idsMax, isCounted, msMax }: { idsMax: number; isCounted: boolean; msMax: number },
): Statement {
  return {
    query: `SELECT
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at,
    toUnixTimestamp64Milli(${watermark(databases)}) AS as_of,
    groupArray(campaign_id) AS ids,
    groupArray(stamp) AS stamps,
    ${totalOf(databases, isCounted)} AS total
FROM (
    SELECT
        campaign_id,
        if(min(updated_at) = max(updated_at), toUnixTimestamp64Milli(max(updated_at)), ${severalChanges}) AS stamp
    FROM ${databases.read}.campaign_changes
    WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND campaign_id != ''
    GROUP BY campaign_id
    LIMIT {ids_max:UInt32}
)
SETTINGS ${timeBound(msMax)}`,
    query_params: { since, ids_max: idsMax },
  }
}

/** The list fields of those of these campaigns that are public: one row of type `ChangedEntriesRow`. */
export function changedEntriesStatement(
  ids: readonly string[],
  databases: Databases,
  { isCounted, msMax }: { isCounted: boolean; msMax: number },
): Statement {
  const total = `${totalOf(databases, isCounted)} AS total,`
  return {
    query: entriesOf(databases, 'campaign_id IN {changed_ids:Array(String)}', msMax, total),
    query_params: { changed_ids: ids },
  }
}

/** Counting reads every row, so it is done only now and then. */
function totalOf(databases: Databases, isCounted: boolean): string {
  return isCounted ? `(SELECT count() FROM ${databases.read}.campaign_pages)` : 'NULL'
}

/**
 * The list fields of the next `rowsMax` public campaigns after an id, in the order of ids: one row of type
 * `EntriesRow`.
 */
export function nextEntriesStatement(
  after: string,
  databases: Databases,
  { rowsMax, msMax }: { rowsMax: number; msMax: number },
): Statement {
  const next = 'campaign_id > {after:String} ORDER BY campaign_id LIMIT {rows_max:UInt32}'
  return { query: entriesOf(databases, next, msMax), query_params: { after, rows_max: rowsMax } }
}

/**
 * The list fields of campaigns, in one row of columns: one row per campaign would take several times as long to transfer and to
 * parse. `where`: of which campaigns. `more`: further columns.
 */
function entriesOf({ read }: Databases, where: string, msMax: number, more = ''): string {
  // The arrays cannot hold null, and a moment before all dates sorts like a missing date.
  const date = (name: string) => `groupArray(ifNull(toUnixTimestamp64Milli(${name}), ${noDate}))`
  return `SELECT ${more}
    groupArray(campaign_id) AS ids,
    groupArray(toString(status)) AS statuses,
    groupArray(toString(category)) AS categories,
    groupArray(CRC32(slug)) AS slug_codes,
    ${date('launch_date')} AS launch_dates,
    ${date('end_date')} AS end_dates,
    groupArray(toFloat64(pledged_platform_amount)) AS pledged,
    groupArray(backer_count) AS backers,
    groupArray(toUnixTimestamp64Milli(updated_at)) AS updates
FROM (
    SELECT campaign_id, status, category, slug, launch_date, end_date, pledged_platform_amount, backer_count, updated_at
    FROM ${read}.campaign_pages
    WHERE ${where}
)
SETTINGS ${timeBound(msMax)}`
}

/**
 * The watermark of what a statement reads: every change with an earlier stamp is in the rows (contracts/tables/generation/0002-batches.sql).
 * ClickHouse evaluates the subquery before it chooses the parts to read. Before the first fold it is the year 1970.
 */
function watermark({ read }: Pick<Databases, 'read'>): string {
  return `ifNull((SELECT reached FROM ${read}.watermark), toDateTime64(0, 3, 'UTC'))`
}

const isRunning = "status = 'LIVE' AND ifNull(end_date > now64(3, 'UTC'), 0)"

const orders: Readonly<Record<Sort, string>> = {
  newest: 'launch_date DESC NULLS LAST',
  // Running campaigns by end, ascending, then the rest by end, descending. A cancelled campaign is not running,
  // whatever its end date is.
  ending_soon: `end_date IS NULL, NOT (${isRunning}),
        if(${isRunning}, 1, -1) * toUnixTimestamp64Milli(ifNull(end_date, now64(3, 'UTC')))`,
  most_funded: 'pledged_platform_amount DESC',
  most_backed: 'backer_count DESC',
}

// Escaping the separator after some hundred thousand ids would make the row longer and slower to parse.
const plainSlashes = 'output_format_json_escape_forward_slashes = 0'
