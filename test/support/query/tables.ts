/** The read tables in an empty ClickHouse, for tests that insert rows as the fold would. */
import type { ProjectDetailRow } from '../../../services/query/campaigns/campaign-fields.ts'
import { generationOf, qualified } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { type ClickHouseAddress, insertJson, openOwnTables } from '../clickhouse/clickhouse.ts'
import { startShards } from '../clickhouse/shards.ts'
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

export type QueryTables = ReturnType<typeof queryTablesOf>

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
  const shards = [{ tables, databases }]
  return queryTablesOf({ tables, asQuery: tables, databases, clickHouse, shards, close })
}

/** The same on two shards. A query process has the rights of its role there, and asks the server that keeps no purges. */
export async function openQueryShards() {
  const { tables, databases, servers, shards, as, stop } = await startShards(2)
  const [clickHouse] = servers
  if (!clickHouse) throw new Error('there is no server')
  const asQuery = as('pledgeview_query', 1)
  return queryTablesOf({ tables, asQuery, databases, clickHouse, shards, close: stop })
}

interface Opened {
  tables: Tables
  /** As a query process reads them. */
  asQuery: Tables
  databases: Databases
  /** The server, for connections of the test's own. */
  clickHouse: ClickHouseAddress
  close(): Promise<void>
}

function queryTablesOf({ shards, ...opened }: Opened & { shards: readonly Shard[] }) {
  const { databases, clickHouse } = opened
  let foldId = 0

  function put(table: string, rows: readonly object[], rest: object): Promise<void> {
    const whole = rows.map(row => ({ ...row, ...rest }))
    return insertJson(clickHouse, qualified(table, databases), whole)
  }

  return {
    ...opened,
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
      opened.tables.run({
        query: `INSERT INTO ${databases.read}.watermarks (shard, reached) VALUES ('${shard}', ${time})`,
      }),
    /** Empties the campaigns, the pledges and the keys. */
    async clear(): Promise<void> {
      for (const shard of shards)
        for (const table of ['campaigns', 'pledge_ledger', 'api_keys'])
          await shard.tables.run({ query: `TRUNCATE TABLE ${qualified(table, shard.databases)}` })
    },
  }
}
