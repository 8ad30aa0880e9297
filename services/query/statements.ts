/**
 * The statements of the query service, as values. Pure: parameters and database names in, text and parameters out.
 *
 * What came from a client stands in a typed placeholder, never in the text. The service reads the data teams' views
 * and, for authentication, the API keys; nothing else.
 */
import type { ListParameters, Sort } from '../../contracts/api/parameters.ts'
import type { Databases, Statement } from '../shared/tables/port.ts'

/** What makes a list what it is, whichever page of it is asked for. */
export type ListQuery = Pick<ListParameters, 'status' | 'category' | 'sort' | 'updatedSince'>

/** What stands for a missing date in `EntriesRow`, ms. */
export const noDate = -8_640_000_000_000_000

/** Between two ids in a snapshot: no campaign id holds a slash. */
export const idSeparator = '/'

const projectColumns = [
  'campaign_id',
  'slug',
  'url',
  'title',
  'subtitle',
  'category',
  'subcategory',
  'location',
  'image_url',
  'currency',
  'goal_amount',
  'pledged_amount',
  'percent_funded',
  'backer_count',
  'follower_count',
  'status',
  'campaign_type',
  'project_type',
  'is_staff_pick',
  'has_adult_content',
  'uses_ai',
  'tags',
  'launch_date',
  'end_date',
  'created_at',
  'creator_name',
  'creator_profile_url',
  'creator_avatar_url',
  'updated_at',
].join(', ')

// Through FINAL ClickHouse tests the sorting key only after it has read all columns, unless told that it may first.
const readByKey = 'optimize_move_to_prewhere_if_final = 1'

/**
 * All ids that a list query matches, in order, as one string (a row per id costs five times as much): one row
 * {ids, total, as_of}. `as_of` is ClickHouse's clock when the statement starts, minus the commit horizon; the rows are
 * read at that moment or after it.
 */
export function snapshotStatement(
  query: ListQuery,
  databases: Databases,
  { commitHorizonMs, msMax }: { commitHorizonMs: number; msMax: number },
): Statement {
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
    now64(3, 'UTC') - toIntervalMillisecond({horizon_ms:UInt32}) AS as_of
FROM (
    SELECT campaign_id
    FROM ${databases.views}.campaigns
    ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
    ORDER BY ${order(query.sort)}, campaign_id
)
SETTINGS ${plainSlashes}, ${timeBound(msMax)}`,
    query_params: {
      horizon_ms: commitHorizonMs,
      ...(query.status !== null && { status: query.status }),
      ...(query.category !== null && { category: query.category }),
      ...(query.updatedSince !== null && { updated_since: query.updatedSince }),
    },
  }
}

/**
 * What changed since a moment, inclusive, for the list index: one row as `ChangesRow`. The ids are at most `idsMax`, those
 * of campaigns that left the public among them. Everything is read at `read_at`, ClickHouse's clock, or after it.
 */
export function campaignChangesStatement(
  since: number,
  databases: Databases,
  { idsMax, msMax }: { idsMax: number; msMax: number },
): Statement {
  return {
    query: `SELECT
    toUnixTimestamp64Milli(now64(3, 'UTC')) AS read_at,
    groupUniqArray({ids_max:UInt32})(campaign_id) AS ids,
    (SELECT count() FROM ${databases.views}.campaigns) AS total
FROM ${databases.model}.campaign_changes
WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
SETTINGS ${timeBound(msMax)}`,
    query_params: { since, ids_max: idsMax },
  }
}

/** The list keys of the public campaigns that changed since a moment, inclusive: one row as `ChangedEntriesRow`. */
export function changedEntriesStatement(since: number, databases: Databases, msMax: number): Statement {
  return {
    query: `${entriesOf(
      `SELECT ${entryColumns} FROM ${databases.views}.campaigns
    WHERE campaign_id IN (
        SELECT campaign_id FROM ${databases.model}.campaign_changes
        WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    )`,
      `(SELECT count() FROM ${databases.views}.campaigns) AS total,`,
    )}
SETTINGS ${readByKey}, ${timeBound(msMax)}`,
    query_params: { since },
  }
}

/** The list keys of the next `rowsMax` public campaigns after an id, in the order of ids: one row as `EntriesRow`. */
export function nextEntriesStatement(
  after: string,
  databases: Databases,
  { rowsMax, msMax }: { rowsMax: number; msMax: number },
): Statement {
  return {
    query: `${entriesOf(`SELECT ${entryColumns} FROM ${databases.views}.campaigns
    WHERE campaign_id > {after:String} ORDER BY campaign_id LIMIT {rows_max:UInt32}`)}
SETTINGS ${readByKey}, ${timeBound(msMax)}`,
    query_params: { after, rows_max: rowsMax },
  }
}

const entryColumns =
  'campaign_id, status, category, launch_date, end_date, pledged_platform_amount, backer_count, updated_at'

/** One row of columns: a row per campaign costs several times as much to bring over and to read. */
function entriesOf(campaigns: string, more = ''): string {
  // An array cannot hold a missing date, and a moment before all dates sorts where a missing one does.
  const date = (name: string) => `groupArray(ifNull(toUnixTimestamp64Milli(${name}), ${noDate}))`
  return `SELECT ${more}
    groupArray(campaign_id) AS ids,
    groupArray(toString(status)) AS statuses,
    groupArray(toString(category)) AS categories,
    ${date('launch_date')} AS launch_dates,
    ${date('end_date')} AS end_dates,
    groupArray(toFloat64(pledged_platform_amount)) AS pledged,
    groupArray(backer_count) AS backers,
    groupArray(toUnixTimestamp64Milli(updated_at)) AS updates
FROM (
    ${campaigns}
)`
}

/** The list fields of these campaigns, in no order: rows as `ProjectRow`. Ids that are not public are left out. */
export function projectsStatement(ids: readonly string[], databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT ${projectColumns}
FROM ${databases.views}.campaigns
WHERE campaign_id IN {ids:Array(String)}
SETTINGS ${readByKey}, ${timeBound(msMax)}`,
    query_params: { ids },
  }
}

/**
 * One public campaign with its texts and tiers by its slug: no row, or one as `ProjectDetailRow`. The id is found
 * first, reading two columns, because reading every column of all that the slug's index points at costs more.
 */
export function projectDetailStatement(slug: string, databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT ${projectColumns}, description, risks, rewards
FROM ${databases.views}.campaigns
WHERE campaign_id = (SELECT min(campaign_id) FROM ${databases.views}.campaigns WHERE slug = {slug:String})
    AND slug = {slug:String}
SETTINGS ${readByKey}, ${timeBound(msMax)}`,
    query_params: { slug },
  }
}

/**
 * The platform in numbers: one row as `StatsRow`. What can be added up comes from one read of the campaigns, so that
 * totals and categories reconcile whatever the fold does meanwhile.
 */
export function statsStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `WITH (SELECT (total_backers, total_creators) FROM ${databases.views}.platform_totals) AS people
SELECT
    sum(pledged) AS total_raised,
    sum(pledges) AS total_pledges,
    people.1 AS total_backers,
    people.2 AS total_creators,
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
SETTINGS ${timeBound(msMax)}`,
  }
}

/** Whether anything about the keys may have changed: one row {fingerprint}. Merges change it too, which does no harm. */
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

/** The active keys: rows {api_key, secret_hash, scopes}. */
export function apiKeysStatement(databases: Databases, msMax: number): Statement {
  return {
    query: `SELECT api_key, secret_hash, scopes
FROM ${databases.model}.api_keys FINAL
WHERE is_active
SETTINGS ${timeBound(msMax)}`,
  }
}

const isRunning = "status = 'LIVE' AND ifNull(end_date > now64(3, 'UTC'), 0)"

function order(sort: Sort): string {
  switch (sort) {
    case 'newest':
      return 'launch_date DESC NULLS LAST'
    case 'ending_soon':
      // The running by end up, then the rest by end down. A campaign that was cancelled does not run, whatever its end
      // date says.
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

// An escaped separator after each of some hundred thousand ids makes the row longer, and slower to parse.
const plainSlashes = 'output_format_json_escape_forward_slashes = 0'

// The wait of the caller ends by its signal; this ends the work, which would go on without a reader.
function timeBound(msMax: number): string {
  return `max_execution_time = ${Math.ceil(msMax / 1000)}`
}
