/**
 * What only all events together show: slugs that several public campaigns have, pledges whose campaign is unknown, because its events
 * never came, and claims of a tier beyond its quantity, because the platform sold too many. The last two are not wrong in themselves: a
 * campaign may come after its first pledge.
 */
import { iso } from '../../tables/clickhouse/statements.ts'
import type { Databases, Shard, Tables } from '../../tables/port.ts'

export interface UnknownCampaigns {
  campaigns: number
  /** Pledges that would count if their campaign were known. */
  pledges: number
  /** Some of the campaigns. */
  examples: string[]
}

export interface OversoldTiers {
  tiers: number
  /** More than there are, of all these tiers. */
  claims: number
  /** Some of the tiers, as `campaign/tier`. */
  examples: string[]
}

export interface Claims {
  unknown: UnknownCampaigns
  oversold: OversoldTiers
}

const examplesMax = 5

/** Reads one column of the pledges, the ids of the campaigns, and three columns of the tiers. Rejects with the error of ClickHouse. */
export async function readClaims(shards: readonly Shard[]): Promise<Claims> {
  const ofShards = await Promise.all(shards.map(readOfShard))
  const sum = (of: (claims: Claims) => number) => ofShards.reduce((all, claims) => all + of(claims), 0)
  const some = (of: (claims: Claims) => string[]) => ofShards.flatMap(of).toSorted().slice(0, examplesMax)
  return {
    unknown: {
      campaigns: sum(({ unknown }) => unknown.campaigns),
      pledges: sum(({ unknown }) => unknown.pledges),
      examples: some(({ unknown }) => unknown.examples),
    },
    oversold: {
      tiers: sum(({ oversold }) => oversold.tiers),
      claims: sum(({ oversold }) => oversold.claims),
      examples: some(({ oversold }) => oversold.examples),
    },
  }
}

async function readOfShard({ tables, databases: { ledger, read } }: Shard): Promise<Claims> {
  // Without FINAL the ids are found in one column. Only the pledges of unknown campaigns are then read with it.
  const [unknown] = await tables.rows<UnknownCampaigns>({
    query: `SELECT uniqExact(campaign_id) AS campaigns, count() AS pledges, arraySort(groupUniqArray(${examplesMax})(campaign_id)) AS examples
      FROM ${ledger}.pledge_ledger FINAL
      WHERE counts AND campaign_id IN (SELECT DISTINCT campaign_id FROM ${ledger}.pledge_ledger
        WHERE campaign_id NOT IN (SELECT campaign_id FROM ${ledger}.campaign_ledger))`,
  })
  const [oversold] = await tables.rows<OversoldTiers>({
    query: `SELECT sum(length(over)) AS tiers, sum(arraySum(over.2)) AS claims,
        arraySlice(arrayFlatten(groupArray(${examplesMax})(arrayMap(tier -> concat(campaign_id, '/', tier.1), over))), 1, ${examplesMax}) AS examples
      FROM (
        SELECT campaign_id, arrayFilter(tier -> tier.2 > 0, arrayMap(
            (tier, claimed, available) -> (tier, if(claimed > ifNull(available, claimed), claimed - assumeNotNull(available), 0)),
            rewards.reward_id, rewards.quantity_claimed, rewards.quantity_available)) AS over
        FROM ${read}.campaigns FINAL
        WHERE notEmpty(over))`,
  })
  if (!unknown || !oversold) throw new Error('the claims returned no row')
  return { unknown, oversold }
}

/** Since when the batches of the last 30 days touch these campaigns, ISO 8601. It reads the whole batch log. */
export async function unknownSince(
  { tables, databases: { ledger } }: Shard,
  campaigns: readonly string[],
): Promise<string | null> {
  if (campaigns.length === 0) return null
  const [row] = await tables.rows<{ since: string | null }>({
    query: `SELECT if(count() = 0, NULL, ${iso('min(oldest_at)')}) AS since
            FROM ${ledger}.batch_log WHERE hasAny(campaign_ids, {campaigns:Array(String)})`,
    query_params: { campaigns },
  })
  return row?.since ?? null
}

/*
 * Slugs that several public campaigns have. The platform promises that there are none, but nothing enforces it between two
 * events. The API then finds the campaign with the smallest id by such a slug, and the others only in lists. So an
 * operator is told: in the status, and by a metric.
 */

export interface SharedSlugs {
  /** How many slugs several public campaigns have. */
  count: number
  /** Some of them, with their campaigns; the API shows the first one. */
  examples: { slug: string; campaign_ids: string[] }[]
}

const idsMax = 10
const lookMsMax = 30_000

/** Reads all public slugs: about 0.1 s for 400,000 campaigns. Rejects with the error of ClickHouse. */
export async function readSharedSlugs(
  tables: Pick<Tables, 'rows'>,
  { views }: Databases,
): Promise<SharedSlugs> {
  const [row] = await tables.rows<{ count: number; examples: [slug: string, ids: string[]][] }>(
    {
      query: `SELECT count() AS count, groupArray(${examplesMax})((slug, ids)) AS examples
        FROM
        (
            SELECT slug, arraySlice(arraySort(groupArray(campaign_id)), 1, ${idsMax}) AS ids
            FROM ${views}.campaigns GROUP BY slug HAVING count() > 1 ORDER BY slug
        )
        SETTINGS max_execution_time = ${lookMsMax / 1000}`,
    },
    { signal: AbortSignal.timeout(lookMsMax) },
  )
  if (!row) throw new Error('the shared slugs returned no row')
  const examples = row.examples.map(([slug, ids]) => ({ slug, campaign_ids: ids }))
  return { count: row.count, examples }
}
