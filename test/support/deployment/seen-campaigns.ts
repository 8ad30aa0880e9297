/** What data teams see of the campaigns on a ClickHouse server, at one moment and all the time. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { type ClickHouseAddress, settingsFor } from '../clickhouse/clickhouse.ts'

export interface SeenCampaign {
  id: string
  title: string
  backers: number
  updated_at: string
}

const lookMs = 20

export async function onTables<T>(
  server: ClickHouseAddress,
  work: (tables: Tables) => Promise<T>,
): Promise<T> {
  const tables = openTables(settingsFor(server))
  try {
    return await work(tables)
  } finally {
    await tables.close()
  }
}

export function seenCampaigns(server: ClickHouseAddress): Promise<SeenCampaign[]> {
  return onTables(server, readCampaigns)
}

/** Fails if anything but these campaigns is seen at any moment of the work, or at its end. */
export async function sameWhile<T>(
  server: ClickHouseAddress,
  campaigns: readonly SeenCampaign[],
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController()
  const seen = new Set<string>()
  const watching = onTables(server, async tables => {
    while (!over.signal.aborted) {
      seen.add(JSON.stringify(await readCampaigns(tables)))
      await delay(lookMs)
    }
  })
  const [worked] = await Promise.allSettled([work().finally(() => over.abort()), watching])
  await watching
  if (worked.status === 'rejected') throw worked.reason
  seen.add(JSON.stringify(await seenCampaigns(server)))
  expect([...seen].map(rows => JSON.parse(rows))).toEqual([campaigns])
  return worked.value
}

function readCampaigns(tables: Tables): Promise<SeenCampaign[]> {
  return tables.rows<SeenCampaign & Record<string, unknown>>({
    query: `SELECT campaign_id AS id, title, backer_count AS backers, toString(updated_at) AS updated_at
            FROM crowdfunding.campaigns ORDER BY campaign_id`,
  })
}
