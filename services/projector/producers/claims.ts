/**
 * Two things that only all events together show: pledges whose campaign is unknown, because its events never came, and claims of a tier
 * beyond its quantity, because the platform sold too many. Neither is wrong in itself: a campaign may come after its first pledge.
 */
import type { Shard } from '../../tables/port.ts'

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
    query: `SELECT if(count() = 0, NULL, formatDateTime(min(oldest_at), '%Y-%m-%dT%H:%i:%S.%fZ')) AS since
            FROM ${ledger}.batch_log WHERE hasAny(campaign_ids, {campaigns:Array(String)})`,
    query_params: { campaigns },
  })
  return row?.since ?? null
}
