/**
 * The statements of the query service, as values. Pure: parameters and database names in, text and parameters out.
 *
 * Values from a client are always typed placeholders, never part of the text. The service reads the views for data
 * teams, views of the same rows for pages and details, what changed and until when, and, for authentication, the API keys;
 * nothing else.
 */
import type { ListParameters, Sort } from '../../../contracts/api/parameters.ts'
import type { Databases, Statement } from '../../shared/tables/port.ts'

/** The parameters that define a list, without the page. */
export type ListQuery = Pick<ListParameters, 'status' | 'category' | 'sort' | 'updatedSince'>

/** The value for a missing date in `EntriesRow`, ms. */
export const noDate = -8_640_000_000_000_000

/** The value for a campaign with several changes in `ChangesRow`. No campaign in the index has this moment. */
export const severalChanges = -1

/** Separates ids in a snapshot: no campaign id contains a slash. */
export const idSeparator = '/'

// A few rows are read sooner by one thread than they are shared among several. The buffers are as small as what is read.
export const fewRows = 'max_threads = 1, max_read_buffer_size = 65536'

// Nearly all pledges are of public campaigns: looking for granules without any costs more than it saves.
const readAllPledges = 'use_index_for_in_with_subqueries = 0'

// The ids come from the slug index, which is used without FINAL. With FINAL, ClickHouse would look at the whole index again.
const readIdsBySlugIndex = 'use_skip_indexes_if_final = 0'

/**
 * All ids that a list query matches, in order, as one string (one row per id would cost five times as much). Returns
 * one row {ids, total, as_of}. The rows are read after `as_of` is (see `watermark`).
 */
export function snapshotStatement(query: ListQuery, databases: Databases, msMax: number): Statement {
  const conditions = [
    ...(query.status === null ? [] : ['status = {status:String}']),
    ...(query.category === null ? [] : ['category = {category:String}']),
    ...(query.updatedSince === null
      ? []
      : ["updated_at >= fromUnixTimestamp64Milli({updated_since:Int64}, 'UTC')"]),
  ]
  return {
    query: `SELECT
    arrayStringConcat(groupArray(campaign_id), '${idSeparator}') AS ids,
    count() AS total,
    ${watermark(databases)} AS as_of
FROM (
    SELECT campaign_id
    FROM ${databases.views}.campaigns
    ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
    ORDER BY ${order(query.sort)}, campaign_id
)
SETTINGS ${plainSlashes}, ${timeBound(msMax)}`,
    query_params: {
      ...(query.status !== null && { status: query.status }),
      ...(query.category !== null && { category: query.category }),
      ...(query.updatedSince !== null && { updated_since: query.updatedSince }),
    },
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
    FROM ${databases.model}.campaign_changes
    WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
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
  return {
    query: `${entriesOf(
      `SELECT ${entryColumns} FROM ${databases.model}.campaign_pages
    WHERE campaign_id IN {changed_ids:Array(String)}`,
      `${totalOf(databases, isCounted)} AS total,`,
    )}
SETTINGS ${timeBound(msMax)}`,
    query_params: { changed_ids: ids },
  }
}

/** Counting reads every row, so it is done only now and then. */
function totalOf(databases: Databases, isCounted: boolean): string {
  return isCounted ? `(SELECT count() FROM ${databases.views}.campaigns)` : 'NULL'
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
  return {
    query: `${entriesOf(`SELECT ${entryColumns} FROM ${databases.model}.campaign_pages
    WHERE campaign_id > {after:String} ORDER BY campaign_id LIMIT {rows_max:UInt32}`)}
SETTINGS ${timeBound(msMax)}`,
    query_params: { after, rows_max: rowsMax },
  }
}

const entryColumns =
  'campaign_id, status, category, slug, launch_date, end_date, pledged_platform_amount, backer_count, updated_at'

/** Returns one row of columns: one row per campaign would take several times as long to transfer and to parse. */
function entriesOf(campaigns: string, more = ''): string {
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
    ${campaigns}
)`
}

/**
 * The page fields of these campaigns, in no particular order: rows of type `CampaignPageRow`. Ids that are not public are
 * left out.
 */
export function projectsStatement(ids: readonly string[], databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT campaign_id, list_fields
FROM ${databases.model}.campaign_pages
WHERE campaign_id IN {ids:Array(String)}
SETTINGS ${fewRows}, ${timeBound(msMax)}`,
    query_params: { ids },
  }
}

/** One public campaign with its texts and reward tiers, by slug: no row, or one of type `CampaignBySlugRow`. */
export function projectDetailStatement(slug: string, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT list_fields, description, risks, reward_fields
FROM ${databases.model}.campaign_by_slug(slug = {slug:String})
SETTINGS ${fewRows}, ${readIdsBySlugIndex}, ${timeBound(msMax)}`,
    query_params: { slug },
  }
}

/**
 * The statistics of the platform: one row of type `StatsRow`. All sums come from one read of the campaigns, so totals
 * and categories agree even if the fold changes them meanwhile. Backers and creators are counted by another read a moment
 * before, and backers in the ledger, which is ahead of the fold (contracts/tables/0005-views.sql). They are never
 * more than the pledges and the campaigns. `threadsMax`: default as many as ClickHouse takes.
 */
export function statsStatement(databases: Databases, msMax: number, threadsMax?: number): Statement {
  return {
    query: `WITH (SELECT (total_backers, total_creators) FROM ${databases.views}.platform_totals) AS people
SELECT
    sum(pledged) AS total_raised,
    sum(pledges) AS total_pledges,
    least(people.1, total_pledges) AS total_backers,
    least(people.2, projects_total) AS total_creators,
    sum(projects) AS projects_total,
    sum(live) AS projects_live,
    sum(funded) AS projects_funded,
    sum(failed) AS projects_failed,
    sum(cancelled) AS projects_cancelled,
    groupArray(category) AS categories,
    groupArray(projects) AS category_projects,
    now64(3, 'UTC') AS generated_at
FROM (
    SELECT
        category,
        count() AS projects,
        countIf(status = 'LIVE') AS live,
        countIf(status = 'FUNDED') AS funded,
        countIf(status = 'FAILED') AS failed,
        countIf(status = 'CANCELLED') AS cancelled,
        sum(pledge_count) AS pledges,
        sum(pledged_platform_amount) AS pledged
    FROM ${databases.views}.campaigns
    GROUP BY category
    ORDER BY projects DESC, category
)
SETTINGS ${threadsMax === undefined ? '' : `max_threads = ${threadsMax}, `}${readAllPledges}, ${timeBound(msMax)}`,
  }
}

/** A fingerprint of the keys: one row {fingerprint}. Merges of the table change it too, which does no harm. */
export function apiKeysFingerprintStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT concat(
    toString(count()), ' ', toString(max(fold_id)), ' ',
    toString(sum(cityHash64(api_key, secret_hash, scopes, is_active, is_deleted, fold_id)))
) AS fingerprint
FROM ${databases.model}.api_keys
SETTINGS ${timeBound(msMax)}`,
  }
}

/** The buckets of the key table that have rows: rows {bucket, row_count, fingerprint}. */
export function apiKeyBucketsStatement(buckets: number, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT
    ${keyBucket} AS bucket,
    count() AS row_count,
    toString(sum(cityHash64(api_key, secret_hash, scopes, is_active, is_deleted, fold_id))) AS fingerprint
FROM ${databases.model}.api_keys
GROUP BY bucket
SETTINGS ${timeBound(msMax)}`,
    query_params: { bucket_count: buckets },
  }
}

/** The active keys of these buckets: rows {api_key, secret_hash, scopes}. */
export function apiKeysStatement(
  buckets: readonly number[],
  bucketCount: number,
  databases: Databases,
  msMax: number,
): Statement {
  return {
    query: `SELECT api_key, secret_hash, scopes
FROM ${databases.model}.api_keys FINAL
WHERE is_active AND ${keyBucket} IN {buckets:Array(UInt32)}
SETTINGS ${timeBound(msMax)}`,
    query_params: { buckets, bucket_count: bucketCount },
  }
}

// The same as `bucketOf` in auth/key-buckets.ts.
const keyBucket = 'CRC32(api_key) % {bucket_count:UInt32}'

/**
 * The watermark of what a statement reads: every change with an earlier stamp is in the rows (contracts/tables/0002-progress.sql).
 * ClickHouse evaluates the subquery before it chooses the parts to read. Before the first fold it is the year 1970.
 */
function watermark({ model }: Databases): string {
  return `ifNull((SELECT reached FROM ${model}.watermark), toDateTime64(0, 3, 'UTC'))`
}

/** The keys to refuse although the key table still has them as active: rows {api_key}. */
export function revokedKeysStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT api_key
FROM ${databases.model}.revoked_keys
SETTINGS ${timeBound(msMax)}`,
  }
}

const isRunning = "status = 'LIVE' AND ifNull(end_date > now64(3, 'UTC'), 0)"

function order(sort: Sort): string {
  switch (sort) {
    case 'newest':
      return 'launch_date DESC NULLS LAST'
    case 'ending_soon':
      // Running campaigns by end, ascending, then the rest by end, descending. A cancelled campaign is not running,
      // whatever its end date is.
      return `end_date IS NULL, NOT (${isRunning}),
        if(${isRunning}, 1, -1) * toUnixTimestamp64Milli(ifNull(end_date, now64(3, 'UTC')))`
    case 'most_funded':
      return 'pledged_platform_amount DESC'
    case 'most_backed':
      return 'backer_count DESC'
    default:
      return sort satisfies never
  }
}

// Escaping the separator after some hundred thousand ids would make the row longer and slower to parse.
const plainSlashes = 'output_format_json_escape_forward_slashes = 0'

// The caller stops waiting by its signal. This setting also stops the work in ClickHouse, which nothing would read.
export function timeBound(msMax: number): string {
  return `max_execution_time = ${Math.ceil(msMax / 1000)}`
}
