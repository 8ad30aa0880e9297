/**
 * What the tables know about one campaign: from the row that the API shows, back to the ledger that it was computed from, and to the
 * batches that brought its events. Sums only: no backer and no single pledge.
 */
import { copiedColumns } from '../../../contracts/tables/campaign-columns.ts'
import { readLongRuns, unfolded } from '../../projector/fold/fold-progress.ts'
import { tombstoneVersion } from '../../projector/ingest/ledger-rows.ts'
import { iso } from '../../tables/clickhouse/statements.ts'
import type { Shard } from '../../tables/port.ts'

export interface Explanation {
  campaign_id: string
  /** The row that the API and the views show; null: they show nothing. Amounts are in major units. */
  shown: Shown | null
  /** The latest state that was read. The content of a campaign that is not public is not stored. */
  ledger: { version: string; state: 'public' | 'not public' | 'deleted' } | null
  /** The campaign's pledges in the ledger. No amount if it is not public: its currency is not stored then. */
  pledges: {
    pledges: number
    backers: number
    amount: string | null
    not_counting: number
    deleted: number
    by_tier: Tier[]
  }
  /** How many batches with events of this campaign are read, but not folded yet. */
  unfolded_batches: number
  /** It cannot be folded within the bounds, and is tried alone. */
  quarantine: { since: string; failures: number; reason: string } | null
  /** The latest batches of the last 30 days with events of this campaign, newest first. */
  batches: Batch[]
  /** Open rejects of this campaign and its pledges, as far as their key can be read, and the place of the latest. */
  rejects: number
  latest_reject: string | null
}

interface Shown {
  pledges: number
  backers: number
  amount: string
  slug: string
  status: string
  updated_at: string
  /** Whether the row has the ledger's values in all fields that the fold copies. */
  is_as_in_ledger: boolean
  /** The statement that wrote the row: the epoch of its leader, and the leader's counter. fold_id = epoch * 2^32 + counter. */
  fold: { epoch: number; counter: number }
  tiers: Tier[]
}

interface Tier {
  /** Empty: without a reward. */
  reward_id: string
  pledges: number
}

interface Batch {
  projector: string
  sequence: number
  appended_at: string
  events: number
  /** Each partition that it had events of, and the offset after the last of them. */
  positions: { topic: string; partition: number; next: number }[]
}

const batchesMax = 5
const copiedOf = (table: string) => `sipHash64((${copiedColumns.map(name => `${table}.${name}`).join(', ')}))`

/** Finds a campaign by its id, or by the slug that it is shown by. On a cluster it asks the shard that has it. */
export async function explainCampaign(
  name: string,
  shards: readonly Shard[],
  whole: Shard,
): Promise<Explanation> {
  const found = await Promise.all(shards.map(shard => readCampaign(name, shard)))
  const known = found.find(({ ledger, shown }) => ledger ?? shown)
  if (known) return { ...known, ...(await readRefused(whole, known.campaign_id)) }
  const bySlug = await idOfSlug(name, whole)
  if (bySlug !== undefined) return explainCampaign(bySlug, shards, whole)
  // Its pledges may be read before it.
  const there =
    found.find(({ pledges }) => pledges.pledges + pledges.not_counting + pledges.deleted > 0) ?? found[0]
  if (!there) throw new Error('there is no shard')
  return { ...there, ...(await readRefused(whole, name)) }
}

async function readCampaign(
  id: string,
  { tables, databases }: Shard,
): Promise<Omit<Explanation, keyof Refused>> {
  const { ledger, read } = databases
  const rows = <T>(query: string, parameters = {}) =>
    tables.rows<T>({ query, query_params: { id, ...parameters } })

  // From the end of the flow to its beginning: what one reading lacks, the next one has.
  const [shown] = await rows<Shown>(
    `SELECT slug, toString(status) AS status, pledge_count AS pledges, backer_count AS backers, toString(pledged_amount) AS amount,
       ${iso('updated_at')} AS updated_at,
       ifNull(${copiedOf('row')} = (SELECT ${copiedOf('state')} FROM ${ledger}.campaign_ledger AS state FINAL WHERE campaign_id = {id:String}), false)
         AS is_as_in_ledger,
       arrayMap(reward -> CAST((reward.reward_id, reward.quantity_claimed), 'Tuple(reward_id String, pledges UInt64)'), rewards) AS tiers,
       CAST((intDiv(fold_id, 4294967296), fold_id % 4294967296), 'Tuple(epoch UInt32, counter UInt32)') AS fold
     FROM ${read}.campaigns AS row FINAL WHERE campaign_id = {id:String}`,
  )
  const { condition, parameters } = unfolded(databases, await readLongRuns(tables, databases))
  const [waiting] = await rows<{ batches: number }>(
    `SELECT count() AS batches FROM ${ledger}.batch_log AS batch WHERE ${condition} AND has(campaign_ids, {id:String})`,
    parameters,
  )
  const [quarantine] = await rows<NonNullable<Explanation['quarantine']>>(
    `SELECT ${iso('since')} AS since, failures, reason FROM ${ledger}.quarantine FINAL
     WHERE campaign_id = {id:String} AND is_quarantined`,
  )
  const [state] = await rows<NonNullable<Explanation['ledger']> & { digits: number }>(
    `SELECT toString(ledger.version) AS version, currency_digits AS digits,
       multiIf(ledger.version = ${tombstoneVersion}, 'deleted', is_public, 'public', 'not public') AS state
     FROM ${ledger}.campaign_ledger AS ledger FINAL WHERE campaign_id = {id:String}`,
  )
  const tiers = await rows<Tier>(
    `SELECT reward_id, count() AS pledges FROM ${ledger}.pledge_ledger FINAL
     WHERE campaign_id = {id:String} AND counts GROUP BY reward_id ORDER BY reward_id`,
  )
  const [sums] = await rows<Omit<Explanation['pledges'], 'by_tier'>>(
    `SELECT countIf(counts) AS pledges, uniqExactIf(backer_hash, counts) AS backers,
       toString(toDecimal128(sumIf(toInt128(amount_minor), counts), 4) / toDecimal128(exp10({digits:UInt8}), 0)) AS amount,
       countIf(NOT counts AND version != ${tombstoneVersion}) AS not_counting, countIf(version = ${tombstoneVersion}) AS deleted
     FROM ${ledger}.pledge_ledger FINAL WHERE campaign_id = {id:String}`,
    { digits: state?.digits ?? 0 },
  )
  if (!sums || !waiting) throw new Error('the ledger returned no sums')
  const batches = await rows<Batch>(
    `SELECT projector, sequence, ${iso('appended_at')} AS appended_at, events,
       CAST(positions, 'Array(Tuple(topic String, partition UInt32, next UInt64))') AS positions
     FROM ${ledger}.batch_log WHERE has(campaign_ids, {id:String})
     ORDER BY batch_log.appended_at DESC, sequence DESC LIMIT ${batchesMax}`,
  )
  return {
    campaign_id: id,
    shown: shown ?? null,
    ledger: state ? { version: state.version, state: state.state } : null,
    pledges: { ...sums, amount: state?.state === 'public' ? sums.amount : null, by_tier: tiers },
    unfolded_batches: waiting.batches,
    quarantine: quarantine ?? null,
    batches,
  }
}

async function idOfSlug(slug: string, { tables, databases }: Shard): Promise<string | undefined> {
  const [row] = await tables.rows<{ id: string }>({
    query: `SELECT campaign_id AS id FROM ${databases.views}.campaigns WHERE slug = {slug:String} ORDER BY id LIMIT 1`,
    query_params: { slug },
  })
  return row?.id === slug ? undefined : row?.id
}

type Refused = Pick<Explanation, 'rejects' | 'latest_reject'>

async function readRefused({ tables, databases }: Shard, id: string): Promise<Refused> {
  const [row] = await tables.rows<Refused>({
    query: `SELECT count() AS rejects,
        if(rejects = 0, NULL, argMax(concat(topic, '/', toString(partition), '/', toString(offset)), rejected_at)) AS latest_reject
      FROM ${databases.base}.rejects FINAL
      WHERE toUnixTimestamp64Milli(settled_at) = 0 AND topic IN ('campaigns', 'pledges')
        AND (key = {id:String} OR startsWith(ifNull(key, ''), concat({id:String}, '/')))`,
    query_params: { id },
  })
  return row ?? { rejects: 0, latest_reject: null }
}
