/** The read tables in an empty ClickHouse, for tests that insert rows as the fold would. */
import type { ProjectDetailRow } from '../../../services/query/campaigns/campaign-fields.ts'
import { generationOf, qualified } from '../../../services/tables/generations.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { type ClickHouseAddress, insertJson, openOwnTables } from '../clickhouse/clickhouse.ts'
import { startShards } from '../clickhouse/shards.ts'
import { addedFields } from '../events/sample-events.ts'

type Amount = 'goal_amount' | 'pledged_amount' | 'percent_funded'

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

export interface QueryTables {
  tables: Tables
  /** As a query process reads them. */
  asQuery: Tables
  databases: Databases
  /** The server, for connections of the test's own. */
  clickHouse: ClickHouseAddress
  /** Inserts rows with a fold id above all earlier ones, so that they replace earlier rows with the same id. */
  putCampaigns(rows: readonly CampaignRow[]): Promise<void>
  putKeys(rows: readonly KeyRow[]): Promise<void>
  putPledges(
    rows: readonly { campaign_id: string; pledge_id: string; backer_hash: number; counts: boolean }[],
  ): Promise<void>
  /** Writes the watermark of a shard. `time`: an expression of ClickHouse, by default its clock. */
  advanceWatermark(options?: { shard?: string; time?: string }): Promise<void>
  /** Empties the campaigns, the pledges and the keys. */
  clear(): Promise<void>
  close(): Promise<void>
}

/** A realistic campaign. Its slug and texts contain the id. */
export function campaignRow(id: string, fields: Partial<CampaignRow> = {}): CampaignRow {
  return {
    ...addedFields,
    campaign_id: id,
    slug: `slug-${id}`,
    url: `https://crowdfunding.example/projects/${id}`,
    title: `Title of ${id}`,
    subtitle: null,
    category: 'Games',
    subcategory: null,
    location: null,
    image_url: null,
    currency: 'EUR',
    goal_amount: '1000',
    pledged_amount: '250.5',
    pledged_platform_amount: '275.55',
    percent_funded: '25.05',
    backer_count: 10,
    pledge_count: 12,
    follower_count: 3,
    status: 'LIVE',
    campaign_type: 'ALL_OR_NOTHING',
    project_type: 'COMIC',
    is_staff_pick: false,
    has_adult_content: false,
    uses_ai: false,
    tags: [],
    launch_date: '2026-01-01 00:00:00.000',
    end_date: '2026-02-01 00:00:00.000',
    created_at: '2025-12-01 10:20:30.456',
    creator_id: `creator-${id}`,
    creator_name: 'A Creator',
    creator_profile_url: 'https://crowdfunding.example/creators/a',
    creator_avatar_url: null,
    description: 'What it is about.',
    risks: 'What may go wrong.',
    rewards: [],
    content_hash: '0123456789abcdef',
    updated_at: '2026-01-02 03:04:05.678',
    is_deleted: 0,
    ...fields,
  }
}

/** A ClickHouse database for one test, migrated and empty. */
export async function openQueryTables(): Promise<QueryTables> {
  const { tables, clickHouse, close } = await openOwnTables()
  const databases: Databases = generationOf({ base: 'query_model', views: 'query_views' }, 1)
  await migrate(tables, databases)
  const shards = [{ tables, databases }]
  return queryTablesOf({ tables, asQuery: tables, databases, clickHouse, shards, close })
}

/** The same on two shards. A query process has the rights of its role there, and asks the server that keeps no purges. */
export async function openQueryShards(): Promise<QueryTables> {
  const { tables, databases, servers, shards, as, stop } = await startShards(2)
  const [clickHouse] = servers
  if (!clickHouse) throw new Error('there is no server')
  return queryTablesOf({
    tables,
    asQuery: as('pledgeview_query', 1),
    databases,
    clickHouse,
    shards,
    close: stop,
  })
}

interface Opened extends Pick<QueryTables, 'tables' | 'asQuery' | 'databases' | 'close'> {
  clickHouse: ClickHouseAddress
  shards: readonly Shard[]
}

function queryTablesOf({ clickHouse, shards, ...opened }: Opened): QueryTables {
  const { databases } = opened
  let foldId = 0

  async function put(table: string, rows: readonly object[]): Promise<void> {
    await insertJson(clickHouse, `${qualified(table, databases)}`, rows)
  }

  return {
    ...opened,
    clickHouse,
    async putCampaigns(rows) {
      foldId++
      await put(
        'campaigns',
        rows.map(row => ({ ...row, fold_id: foldId })),
      )
    },
    async putKeys(rows) {
      foldId++
      const rest = { account_id: 'account', updated_at: '2026-01-01 00:00:00.000', fold_id: foldId }
      await put(
        'api_keys',
        rows.map(row => ({ is_deleted: 0, ...row, ...rest })),
      )
    },
    async putPledges(rows) {
      const rest = { version: 1, amount_minor: 1, platform_amount_minor: 1, reward_id: '' }
      await put(
        'pledge_ledger',
        rows.map(row => ({ ...row, ...rest })),
      )
    },
    advanceWatermark: ({ shard = '', time = 'now64(3)' } = {}) =>
      opened.tables.run({
        query: `INSERT INTO ${databases.read}.watermarks (shard, reached) VALUES ('${shard}', ${time})`,
      }),
    async clear() {
      for (const shard of shards)
        for (const table of ['campaigns', 'pledge_ledger', 'api_keys'])
          await shard.tables.run({ query: `TRUNCATE TABLE ${qualified(table, shard.databases)}` })
    },
  }
}
