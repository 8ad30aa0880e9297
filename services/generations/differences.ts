/**
 * Compares what the public sees in the live tables and in the rebuilt ones. The rebuilt ones have everything that was in the log when
 * they were looked at (`compared`). The live ones have it as soon as it is folded.
 */
import { contentColumns } from '../../contracts/tables/campaign-columns.ts'
import { unfolded } from '../projector/fold/fold-progress.ts'
import type { RebuildShard } from './context.ts'
import type { Sides } from './withdrawals.ts'

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

interface Counts extends Omit<Differences, 'fields' | 'examples'> {
  examples: Omit<Example, 'fields'>[]
}

/** Compares what is public in the current generation and in the new one, by content; `updated_at` does not count. */
export async function readDifferences(shard: RebuildShard): Promise<Differences> {
  const [counts] = await shard.tables.rows<Counts>({
    query: `WITH ${compared(shard)}
        SELECT
            countIf(change = 'same') AS same,
            countIf(change = 'added' AND NOT moves) AS added,
            countIf(change = 'removed' AND NOT moves) AS removed,
            countIf(change = 'different' AND NOT moves) AS different,
            countIf(change != 'same' AND moves) AS inMotion,
            CAST(
                arraySlice(arraySort(groupArrayIf(1000)((campaign_id, change), change != 'same' AND NOT moves)), 1, ${examplesMax}),
                'Array(Tuple(campaign_id String, change String))') AS examples
        FROM compared`,
    query_params: { since: shard.compared.at },
  })
  if (!counts) throw new Error('the comparison returned no row')
  const { examples, ...rest } = counts
  const { fields, ofExamples } = rest.different > 0 ? await readFields(shard, examples) : noFields
  const withFields = examples.map(one => ({ ...one, fields: ofExamples[one.campaign_id] ?? [] }))
  return { ...rest, fields, examples: withFields }
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

interface Fields {
  fields: Differences['fields']
  /** By campaign. */
  ofExamples: Record<string, Example['fields']>
}

const noFields: Fields = { fields: {}, ofExamples: {} }

/** How often each field differs, among campaigns that are public on both sides, and the texts of the examples. */
async function readFields(shard: RebuildShard, examples: Counts['examples']): Promise<Fields> {
  const texts = contentColumns
    .filter(name => name !== 'campaign_id')
    .map(name => `('${name}', ${textOf(`live.${name}`)}, ${textOf(`rebuilt.${name}`)})`)
  const ofSide = (read: string) =>
    `(SELECT * FROM ${read}.campaigns FINAL WHERE campaign_id IN (SELECT campaign_id FROM differing))`
  const [row] = await shard.tables.rows<Fields>({
    query: `WITH ${compared(shard)},
            differing AS (SELECT campaign_id FROM compared WHERE change = 'different' AND NOT moves)
            SELECT
              sumMap(mapFromArrays(arrayMap(field -> field.1, changed), arrayMap(field -> 1, changed))) AS fields,
              CAST(
                groupArrayIf((id, arrayMap(field -> (field.1, ${cut('field.2')}, ${cut('field.3')}), changed)), id IN {ids:Array(String)}),
                'Map(String, Array(Tuple(field String, live String, rebuilt String)))') AS ofExamples
            FROM
            (
              SELECT live.campaign_id AS id, arrayFilter(field -> field.2 != field.3, [${texts.join(', ')}]) AS changed
              FROM ${ofSide(shard.live.read)} AS live
              INNER JOIN ${ofSide(shard.rebuilt.read)} AS rebuilt ON live.campaign_id = rebuilt.campaign_id
            )`,
    query_params: { since: shard.compared.at, ids: examples.map(one => one.campaign_id) },
  })
  return row ?? noFields
}

/** Tables for WITH: each campaign, how it changed, and whether it is in motion: one of the two sides may not have all its events yet. */
function compared({ live, rebuilt }: Sides): string {
  const isLate = "appended_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')"
  const { condition } = unfolded(live, [])
  return `compared AS
        (
            SELECT campaign_id,
                multiIf(sum(is_live) = 0, 'added', sum(is_live) = count(), 'removed', uniqExact(content_hash) > 1, 'different', 'same') AS change,
                change != 'same' AND campaign_id IN
                (
                    SELECT arrayJoin(campaign_ids) FROM ${live.ledger}.batch_log AS batch WHERE ${isLate} OR ${condition}
                    UNION ALL
                    SELECT arrayJoin(campaign_ids) FROM ${rebuilt.ledger}.batch_log WHERE ${isLate}
                ) AS moves
            FROM
            (
                SELECT campaign_id, content_hash, 1 AS is_live FROM ${live.read}.campaigns FINAL
                UNION ALL
                SELECT campaign_id, content_hash, 0 FROM ${rebuilt.read}.campaigns FINAL
            )
            GROUP BY campaign_id
        )`
}

function textOf(column: string): string {
  return `ifNull(toString(${column}), 'null')`
}

/** The text, shortened. */
function cut(text: string): string {
  return `if(lengthUTF8(${text}) > ${textMax}, concat(substringUTF8(${text}, 1, ${textMax}), '…'), ${text})`
}
