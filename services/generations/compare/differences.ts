/** Compares what the public sees in the live tables and in the rebuilt ones. */
import { contentColumns } from '../../../contracts/tables/campaign-columns.ts'
import { unfolded } from '../../projector/fold/batch-conditions.ts'
import type { Tables } from '../../tables/port.ts'
import type { Sides } from '../build/ledgers.ts'

export interface Differences {
  same: number
  /** Public only in the rebuilt tables. */
  added: number
  /** Public only in the live tables. */
  removed: number
  different: number
  /** How many more differ that had events a moment ago: one of the two sides may not have these events yet. */
  inMotion: number
  /** For each field, in how many of the different campaigns it differs. Campaigns in motion are not counted. */
  fields: Record<string, number>
  examples: Example[]
}

export interface Example {
  campaign_id: string
  change: 'added' | 'removed' | 'different'
  /** The fields that differ in a different campaign, as text, shortened. */
  fields: { field: string; live: string; rebuilt: string }[]
}

const examplesMax = 10
const textMax = 200

interface Counts {
  same: number
  added: number
  removed: number
  different: number
  inMotion: number
  examples: [string, Example['change']][]
}

/** ClickHouse's clock, as text. */
export async function readClock(tables: Tables): Promise<string> {
  const [row] = await tables.rows<{ now: string }>({ query: "SELECT toString(now64(3, 'UTC')) AS now" })
  return row?.now ?? ''
}

/**
 * Compares what is public in the current generation and in the new one, by content; `updated_at` does not count.
 * `since`: a time (`readClock`) before the new one read from the log for the last time. It has everything that was
 * in the log then. The live tables have it as soon as it is folded.
 */
export async function readDifferences(tables: Tables, sides: Sides, since: string): Promise<Differences> {
  const [live, rebuilt] = [sides.live.read, sides.rebuilt.read]
  const [counts] = await tables.rows<Counts>({
    query: `WITH
        both AS
        (
            SELECT campaign_id, sum(is_live) AS lives, sum(is_rebuilt) AS rebuilds, uniqExact(content_hash) AS contents
            FROM
            (
                SELECT campaign_id, content_hash, 1 AS is_live, 0 AS is_rebuilt FROM ${live}.campaigns FINAL
                UNION ALL
                SELECT campaign_id, content_hash, 0, 1 FROM ${rebuilt}.campaigns FINAL
            )
            GROUP BY campaign_id
        ),
        in_motion AS
        (
            ${inMotion(sides)}
        )
        SELECT
            countIf(change = 'same') AS same,
            countIf(change = 'added' AND NOT moves) AS added,
            countIf(change = 'removed' AND NOT moves) AS removed,
            countIf(change = 'different' AND NOT moves) AS different,
            countIf(change != 'same' AND moves) AS inMotion,
            arraySlice(groupArrayIf(1000)((campaign_id, change), change != 'same' AND NOT moves), 1, ${examplesMax}) AS examples
        FROM
        (
            SELECT campaign_id,
                multiIf(lives = 0, 'added', rebuilds = 0, 'removed', contents > 1, 'different', 'same') AS change,
                change != 'same' AND campaign_id IN (SELECT campaign_id FROM in_motion) AS moves
            FROM both
            ORDER BY campaign_id
        )`,
    query_params: { since },
  })
  if (!counts) throw new Error('the comparison returned no row')
  const { examples, ...rest } = counts
  return {
    ...rest,
    fields: rest.different > 0 ? await readFields(tables, sides, since) : {},
    examples: await readExamples(tables, { live, rebuilt }, examples),
  }
}

/** The differences of all shards as those of one platform. */
export function sumDifferences(ofShards: readonly Differences[]): Differences {
  const sum = (numberOf: (one: Differences) => number) =>
    ofShards.reduce((total, one) => total + numberOf(one), 0)
  const names = new Set(ofShards.flatMap(one => Object.keys(one.fields)))
  return {
    same: sum(one => one.same),
    added: sum(one => one.added),
    removed: sum(one => one.removed),
    different: sum(one => one.different),
    inMotion: sum(one => one.inMotion),
    fields: Object.fromEntries([...names].map(name => [name, sum(one => one.fields[name] ?? 0)])),
    examples: ofShards.flatMap(one => one.examples).slice(0, examplesMax),
  }
}

const fields = contentColumns.filter(name => name !== 'campaign_id')

/** How often each field differs, among campaigns that are public on both sides. */
async function readFields(tables: Tables, sides: Sides, since: string): Promise<Record<string, number>> {
  const [live, rebuilt] = [sides.live.read, sides.rebuilt.read]
  const counts = fields.map(name => `countIf(NOT (live.${name} <=> rebuilt.${name})) AS ${name}`)
  const [row] = await tables.rows<Record<string, number>>({
    query: `SELECT ${counts.join(', ')}
            FROM (SELECT * FROM ${live}.campaigns FINAL WHERE campaign_id IN (SELECT campaign_id FROM ${differing(sides)})) AS live
            INNER JOIN (SELECT * FROM ${rebuilt}.campaigns FINAL WHERE campaign_id IN (SELECT campaign_id FROM ${differing(sides)})) AS rebuilt
              ON live.campaign_id = rebuilt.campaign_id`,
    query_params: { since },
  })
  return Object.fromEntries(Object.entries(row ?? {}).filter(([, count]) => count > 0))
}

function differing(sides: Sides): string {
  const [live, rebuilt] = [sides.live.read, sides.rebuilt.read]
  return `(
    SELECT live.campaign_id AS campaign_id
    FROM (SELECT campaign_id, content_hash FROM ${live}.campaigns FINAL) AS live
    INNER JOIN (SELECT campaign_id, content_hash FROM ${rebuilt}.campaigns FINAL) AS rebuilt
      ON live.campaign_id = rebuilt.campaign_id
    WHERE live.content_hash != rebuilt.content_hash
      AND campaign_id NOT IN (${inMotion(sides)}))`
}

/** Campaigns in motion: one of the two sides may not have all their events yet. */
function inMotion({ live, rebuilt }: Sides): string {
  const isLate = "appended_at >= toDateTime64({since:String}, 3, 'UTC')"
  const { condition } = unfolded(live, [])
  return `SELECT arrayJoin(campaign_ids) AS campaign_id FROM ${live.ledger}.batch_log AS batch
            WHERE ${isLate} OR ${condition}
            UNION ALL
            SELECT arrayJoin(campaign_ids) FROM ${rebuilt.ledger}.batch_log WHERE ${isLate}`
}

async function readExamples(
  tables: Tables,
  { live, rebuilt }: { live: string; rebuilt: string },
  found: Counts['examples'],
): Promise<Example[]> {
  const ids = found.filter(([, change]) => change === 'different').map(([id]) => id)
  const [before, after] = await Promise.all([readTexts(tables, live, ids), readTexts(tables, rebuilt, ids)])
  return found.map(([campaign_id, change]) => {
    const [was = {}, is = {}] = [before.get(campaign_id), after.get(campaign_id)]
    const changed = Object.keys(was).filter(field => was[field] !== is[field])
    return {
      campaign_id,
      change,
      fields: changed.map(field => ({ field, live: cut(was[field]), rebuilt: cut(is[field]) })),
    }
  })
}

/** The fields of these campaigns as text. */
async function readTexts(
  tables: Tables,
  read: string,
  ids: readonly string[],
): Promise<Map<string, Record<string, string>>> {
  if (ids.length === 0) return new Map()
  const texts = fields.map(name => `ifNull(toString(tidy.${name}), 'null') AS ${name}`)
  const rows = await tables.rows<Record<string, string> & { id: string }>({
    query: `SELECT tidy.campaign_id AS id, ${texts.join(', ')}
            FROM (SELECT * FROM ${read}.campaigns FINAL WHERE campaign_id IN {ids:Array(String)}) AS tidy`,
    query_params: { ids: [...ids] },
  })
  return new Map(rows.map(({ id, ...row }) => [id, row]))
}

function cut(text = ''): string {
  return text.length > textMax ? `${text.slice(0, textMax)}…` : text
}
