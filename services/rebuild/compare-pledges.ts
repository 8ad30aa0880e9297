/**
 * Compares the pledges of two sides of `takeStamps`, so that no deletion of a pledge is undone by a replay, either.
 *
 * Only campaigns that both sides show with different content are looked into: a pledge that comes back, or is missing, changes the sums of
 * its campaign. Of these, all withdrawn pledges of the other tables are looked up here. The others are counted.
 */
import type { Databases, Shard } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import { onEach } from './cluster.ts'
import type { Compared, Staged } from './staged-stamps.ts'

const campaignsPerPage = 1_000
const pledgesPerPage = 5_000
const namesMax = 5

const files = {
  different: readSql('different-campaigns', import.meta.url),
  withdrawn: readSql('withdrawn-pledges', import.meta.url),
  comeBack: readSql('pledges-that-come-back', import.meta.url),
}

interface PledgeKey {
  campaign_id: string
  pledge_id: string
  version: string
}

/** Throws what ClickHouse throws. */
export async function comparePledges(
  from: readonly Shard[],
  places: readonly Shard[],
  staged: Staged,
): Promise<Compared> {
  const found: Compared = { withdrawn: 0, withdrawnIds: [], missing: 0, missingIds: [] }
  for (const place of places) {
    for await (const campaigns of differentCampaigns(place, staged)) {
      for (const shard of from) {
        await findComingBack(shard, place, campaigns, found)
      }
      await findMissing(from, place, campaigns, found)
    }
  }
  return found
}

/** Pages of ids of a place. */
async function* differentCampaigns(
  { tables, databases }: Shard,
  { stamps }: Staged,
): AsyncGenerator<string[]> {
  for (let after = ''; ; ) {
    const page = await tables.rows<{ id: string }>({
      query: fill(files.different, databases).replaceAll('${stamps}', stamps),
      query_params: { after, rows_max: campaignsPerPage },
    })
    const last = page.at(-1)
    if (!last) return
    yield page.map(({ id }) => id)
    after = last.id
  }
}

async function findComingBack(
  from: Shard,
  place: Shard,
  campaigns: string[],
  found: Compared,
): Promise<void> {
  for (let after = ['', '']; ; ) {
    const page = await from.tables.rows<PledgeKey>({
      query: fill(files.withdrawn, from.databases),
      query_params: {
        campaigns,
        after_campaign: after[0],
        after_pledge: after[1],
        rows_max: pledgesPerPage,
      },
    })
    const last = page.at(-1)
    if (!last) return
    const rows = await place.tables.rows<PledgeKey>({
      query: fill(files.comeBack, place.databases),
      query_params: {
        campaigns: page.map(({ campaign_id }) => campaign_id),
        pledges: page.map(({ pledge_id }) => pledge_id),
        versions: page.map(({ version }) => version),
      },
    })
    found.withdrawn += rows.length
    const ids = rows.map(({ campaign_id, pledge_id }) => `pledge ${pledge_id} of ${campaign_id}`)
    found.withdrawnIds = [...found.withdrawnIds, ...ids].slice(0, namesMax)
    after = [last.campaign_id, last.pledge_id]
  }
}

/** A pledge that counts there is known here, whatever has become of it since. A campaign that lacks some counts once. */
async function findMissing(
  from: readonly Shard[],
  place: Shard,
  campaigns: string[],
  found: Compared,
): Promise<void> {
  const counted = async ({ tables, databases }: Shard, rows: string) => {
    const counts = await tables.rows<{ id: string; pledges: number }>({
      query: `SELECT campaign_id AS id, ${rows} AS pledges FROM ${databases.model}.pledge_ledger FINAL
              WHERE campaign_id IN {campaigns:Array(String)} GROUP BY campaign_id`,
      query_params: { campaigns },
    })
    return counts.map(({ id, pledges }) => [id, Number(pledges)] as const)
  }
  const here = new Map(await counted(place, 'count()'))
  const there = (await onEach(from, shard => counted(shard, 'countIf(counts)'))).flat()
  for (const [id, pledges] of there) {
    const missing = pledges - (here.get(id) ?? 0)
    if (missing <= 0) continue
    found.missing++
    found.missingIds = [...found.missingIds, `${missing} pledges of ${id}`].slice(0, namesMax)
  }
}

function fill(sql: string, { model }: Databases): string {
  return sql.replaceAll('${model}', model)
}
