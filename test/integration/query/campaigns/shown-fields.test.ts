/** What pages and details show is what the data teams' views have, although it is read from other columns. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { detailColumns, listColumns } from '../../../../contracts/tables/campaign-columns.ts'
import {
  type CampaignBySlugRow,
  projectDetailRowOf,
  projectRowOf,
} from '../../../../services/query/campaigns/campaign-fields.ts'
import {
  type CampaignPageRow,
  projectsStatement,
} from '../../../../services/query/campaigns/campaign-rows.ts'
import { detailByIdStatement, projectDetailStatement } from '../../../../services/query/endpoints/project.ts'
import { fullCampaign } from '../../../support/query/campaigns.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query/tables.ts'

let store: QueryTables
beforeAll(async () => {
  store = await openQueryTables()
})
afterAll(() => store.close())

const awkward = campaignRow('awkward', {
  title: 'quotes " and \\ and / and \t and \u0001 and çok güzel 🎲',
  tags: ['', '"', "'", '/', ','],
  goal_amount: '9007199254740.9931',
  pledged_amount: '0.0001',
  percent_funded: '0.01',
  backer_count: Number.MAX_SAFE_INTEGER,
  end_date: null,
  rewards: [
    {
      reward_id: '"',
      title: '\n',
      description: '\\',
      amount: 0.5,
      quantity_available: null,
      quantity_claimed: 0,
      quantity_remaining: null,
    },
  ],
})

/** The campaign as the views have it. */
async function viewed(id: string, columns: readonly string[]): Promise<unknown> {
  const [row] = await store.tables.rows({
    query: `SELECT ${columns.join(', ')} FROM ${store.databases.views}.campaigns WHERE campaign_id = {id:String}`,
    query_params: { id },
  })
  return row
}

async function shown(id: string, slug: string) {
  const [page] = await store.tables.rows<CampaignPageRow>(projectsStatement([id], store.databases, 10_000))
  const [detail] = await store.tables.rows<CampaignBySlugRow>(
    projectDetailStatement(slug, store.databases, 10_000),
  )
  const [byId] = await store.tables.rows<CampaignBySlugRow>(detailByIdStatement(id, store.databases, 10_000))
  return {
    page: page && projectRowOf(page.list_fields),
    detail: detail && projectDetailRowOf(detail),
    byId: byId && projectDetailRowOf(byId),
  }
}

async function expectAsViewed(id: string, slug: string): Promise<void> {
  const list = [...listColumns, 'updated_at']
  const { page, detail, byId } = await shown(id, slug)
  expect(page).toEqual(await viewed(id, list))
  expect(detail).toEqual(await viewed(id, [...list, ...detailColumns]))
  expect(byId).toEqual(detail)
}

const rows = [campaignRow('plain'), campaignRow('full', fullCampaign), awkward]

it('is every field of a list and a detail, with the values of the views', async () => {
  await store.putCampaigns(rows)
  for (const { campaign_id, slug } of rows) await expectAsViewed(campaign_id, slug)
})

it('is the same if the server quotes numbers', async () => {
  await store.clear()
  const { read } = store.databases
  await store.putCampaigns(rows)
  await store.tables.run({
    query: `INSERT INTO ${read}.campaigns SELECT * REPLACE (fold_id + 1 AS fold_id) FROM ${read}.campaigns
      SETTINGS async_insert = 0, output_format_json_quote_64bit_integers = 1, output_format_json_quote_decimals = 1`,
  })
  const [written] = await store.tables.rows<{ list_fields: string }>({
    query: `SELECT list_fields FROM ${read}.campaigns FINAL WHERE campaign_id = 'plain'`,
  })
  expect(written?.list_fields).toContain('"250.5"')
  for (const { campaign_id, slug } of rows) await expectAsViewed(campaign_id, slug)
})

it('finds by a shared slug the campaign with the smallest id that has it now', async () => {
  await store.clear()
  const slug = 'shared'
  await store.putCampaigns(['b', 'a', 'c'].map(id => campaignRow(id, { slug })))
  expect((await shown('a', slug)).detail?.campaign_id).toBe('a')
  await store.putCampaigns([campaignRow('a', { slug: 'left' })])
  expect((await shown('a', slug)).detail?.campaign_id).toBe('b')
  await store.putCampaigns([campaignRow('b', { is_deleted: 1, slug: '' })])
  expect((await shown('b', slug)).detail?.campaign_id).toBe('c')
  expect((await shown('b', slug)).page).toBeUndefined()
  await store.putCampaigns([campaignRow('0', { slug })])
  expect((await shown('0', slug)).detail?.campaign_id).toBe('0')
})
