/** The read tables in an empty ClickHouse, for tests that insert rows as the fold would. */
import type { ProjectDetailRow } from '../../../services/query/campaigns/campaign-fields.ts'
import { generationOf, qualified } from '../../../services/tables/generation-log.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { insertJson, openOwnTables } from '../clickhouse/clickhouse.ts'
import { type Amount, shownFields } from './campaigns.ts'

/** A row of the model's campaigns; amounts in major units, timestamps as `YYYY-MM-DD hh:mm:ss.mmm`. */
export interface CampaignRow extends Omit<ProjectDetailRow, Amount | 'status'>, Record<Amount, string> {
  status: string
  pledged_platform_amount: string
  pledge_count: number
  creator_id: string
  content_hash: string
  is_deleted: 0 | 1
}

export interface KeyRow {
  api_key: string
  secret_hash: string
  scopes: string[]
  is_active: boolean
  is_deleted?: 0 | 1
}

export interface PledgeRow {
  campaign_id: string
  pledge_id: string
  backer_hash: number
  counts: boolean
}

export type QueryTables = Awaited<ReturnType<typeof openQueryTables>>

/** A realistic campaign. Its slug and texts contain the id. */
export function campaignRow(id: string, fields: Partial<CampaignRow> = {}): CampaignRow {
  return {
    ...shownFields(id),
    goal_amount: '1000',
    pledged_amount: '250.5',
    pledged_platform_amount: '275.55',
    percent_funded: '25.05',
    pledge_count: 12,
    creator_id: `creator-${id}`,
    content_hash: '0123456789abcdef',
    is_deleted: 0,
    ...fields,
  }
}

/** A ClickHouse database for one test, migrated and empty. */
export async function openQueryTables() {
  const { tables, clickHouse, close } = await openOwnTables()
  const databases = generationOf({ base: 'query_model', views: 'query_views' }, 1)
  await migrate(tables, databases)
  let foldId = 0

  function put(table: string, rows: readonly object[], rest: object): Promise<void> {
    const whole = rows.map(row => ({ ...row, ...rest }))
    return insertJson(clickHouse, qualified(table, databases), whole)
  }

  return {
    ...{ tables, databases, clickHouse, close },
    /** Inserts rows with a fold id above all earlier ones, so that they replace earlier rows with the same id. */
    putCampaigns: (rows: readonly CampaignRow[]) => put('campaigns', rows, { fold_id: ++foldId }),
    putKeys(rows: readonly KeyRow[]): Promise<void> {
      const whole = rows.map(row => ({ is_deleted: 0, ...row }))
      const rest = { account_id: 'account', updated_at: '2026-01-01 00:00:00.000', fold_id: ++foldId }
      return put('api_keys', whole, rest)
    },
    putPledges: (rows: readonly PledgeRow[]) =>
      put('pledge_ledger', rows, { version: 1, amount_minor: 1, platform_amount_minor: 1, reward_id: '' }),
    /** Writes the watermark of a shard. `time`: an expression of ClickHouse, by default its clock. */
    advanceWatermark: ({ shard = '', time = 'now64(3)' } = {}): Promise<void> =>
      tables.run({
        query: `INSERT INTO ${databases.read}.watermarks (shard, reached) VALUES ('${shard}', ${time})`,
      }),
    /** Empties the campaigns, the pledges and the keys. */
    async clear(): Promise<void> {
      for (const table of ['campaigns', 'pledge_ledger', 'api_keys'])
        await tables.run({ query: `TRUNCATE TABLE ${qualified(table, databases)}` })
    },
  }
}
