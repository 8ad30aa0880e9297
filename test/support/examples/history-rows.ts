/** Writes the history of a world's days as the fold worker would have left it (contracts/tables/0003-days.sql). */
import { isDeepStrictEqual } from 'node:util'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { type ClickHouseAddress, insertJson } from '../clickhouse/clickhouse.ts'
import { dayMs, type ExampleWorld, type Shown } from './world.ts'

export async function fillHistory(
  { tables, clickHouse }: { tables: Tables; clickHouse: ClickHouseAddress },
  { base }: Databases,
  world: ExampleWorld,
): Promise<void> {
  await tables.run({ query: `TRUNCATE TABLE ${base}.campaign_days` })
  await insertJson(clickHouse, `${base}.campaign_days`, daysOf(world))
}

function daysOf({ days, history }: ExampleWorld) {
  const ids = new Set([...history.values()].flatMap(shown => [...shown.keys()]))
  return [...ids].flatMap(id => {
    let before: Shown | undefined
    let completeFrom: number | undefined
    return days.flatMap(day => {
      const now = history.get(day)?.get(id)
      const facts = factsOf(now)
      if (isDeepStrictEqual(facts, factsOf(before))) return []
      const previous = before
      before = now
      const launched = now ? Math.floor(now.launch / dayMs) : null
      const isNew = launched !== null && launched >= day - 1
      const wasShown = completeFrom !== undefined
      if (!previous) completeFrom = isNew ? Math.min(day, launched) : day
      return [
        {
          campaign_id: id,
          day,
          source: 'kept',
          is_deleted: now ? 0 : 1,
          ...facts,
          launched,
          previous_source: previous ? 'kept' : '',
          previous_category: previous?.category ?? '',
          previous_platform_amount: previous?.platform ?? 0,
          previous_backer_count: previous?.backers ?? 0,
          previous_pledge_count: previous?.pledges ?? 0,
          is_opening: now !== undefined && !previous && (wasShown || !isNew),
          complete_from: completeFrom,
          updated_at: (day + 1) * dayMs - 1,
        },
      ]
    })
  })
}

/** Nothing for a campaign that is hidden: ClickHouse fills the columns with their defaults. */
function factsOf(shown: Shown | undefined): object {
  if (shown === undefined) return {}
  const { status, category, currency, pledged, platform, percent, backers, pledges, followers } = shown
  return {
    ...{ status, category, currency, pledged_amount: pledged, pledged_platform_amount: platform },
    ...{ percent_funded: percent, backer_count: backers, pledge_count: pledges, follower_count: followers },
  }
}
