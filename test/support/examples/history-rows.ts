/** Writes the history of a world's closed days as the fold worker would have left it (contracts/tables/0004-history.sql). */
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { type ClickHouseAddress, insertJson } from '../clickhouse/clickhouse.ts'
import { dayMs, type ExampleWorld, type Shown } from './world.ts'

const hidden = {
  status: '',
  category: '',
  currency: '',
  pledged: 0,
  platform: 0,
  percent: 0,
  backers: 0,
  pledges: 0,
  followers: 0,
}

export async function fillHistory(
  { tables, clickHouse }: { tables: Tables; clickHouse: ClickHouseAddress },
  { base, read }: Databases,
  world: ExampleWorld,
): Promise<void> {
  const rows = closedRows(world)
  const latest = new Map(rows.map(row => [row.campaign_id, row]))
  await insertJson(clickHouse, `${base}.campaign_days`, rows)
  await insertJson(clickHouse, `${base}.history_latest`, [...latest.values()])
  const today = `toDateTime64(toDate(${world.days.at(-1)}), 3, 'UTC')`
  await tables.run({
    query: `INSERT INTO ${base}.history_closed (shard, closed_from, closed) SELECT shard, ${today}, ${today} FROM ${read}.watermarks GROUP BY shard`,
  })
}

function closedRows({ days, history }: ExampleWorld) {
  const ids = new Set([...history.values()].flatMap(shown => [...shown.keys()]))
  return [...ids].flatMap(id => {
    let isKnown = false
    let before: Shown | undefined
    return days.slice(0, -1).flatMap(day => {
      const now = history.get(day)?.get(id)
      const previous = before
      before = now
      if (factsOf(now) === factsOf(previous)) return []
      const wasKnown = isKnown
      isKnown = true
      const isNew = now !== undefined && Math.floor(now.launch / dayMs) >= day - 1
      const { status, category, currency, pledged, platform, percent, backers, pledges, followers } =
        now ?? hidden
      return [
        {
          campaign_id: id,
          day,
          is_deleted: now ? 0 : 1,
          ...{
            status,
            category,
            currency,
            backer_count: backers,
            pledge_count: pledges,
            follower_count: followers,
          },
          pledged_amount: pledged,
          pledged_platform_amount: platform,
          percent_funded: percent,
          updated_at: (day + 1) * dayMs - 1,
          was_public: previous !== undefined,
          is_opening: now !== undefined && previous === undefined && (wasKnown || !isNew),
          previous_category: previous?.category ?? '',
          previous_platform_amount: previous?.platform ?? 0,
          previous_backer_count: previous?.backers ?? 0,
          previous_pledge_count: previous?.pledges ?? 0,
        },
      ]
    })
  })
}

function factsOf(shown: Shown | undefined): string {
  if (shown === undefined) return ''
  const { status, category, currency, pledged, platform, percent, backers, pledges, followers } = shown
  return JSON.stringify([status, category, currency, pledged, platform, percent, backers, pledges, followers])
}
