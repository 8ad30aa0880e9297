/**
 * What pages and details show is what the data teams' views have, although it is read from other columns. A detail that is read by the id
 * from the list index is the one that the search by slug finds.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ProjectDetail } from '../../../../contracts/api/schemas.ts'
import {
  type CampaignBySlugRow,
  projectDetailRowOf,
  projectRowOf,
} from '../../../../services/query/campaigns/campaign-fields.ts'
import {
  type CampaignPageRow,
  projectsStatement,
} from '../../../../services/query/campaigns/campaign-rows.ts'
import { type Asked, NotFoundError } from '../../../../services/query/endpoints/endpoint.ts'
import {
  detailByIdStatement,
  project,
  projectDetailStatement,
} from '../../../../services/query/endpoints/project.ts'
import { createListFollower, type ListFollower } from '../../../../services/query/lists/list-follower.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import type { Statement, Tables } from '../../../../services/tables/port.ts'
import { fullCampaign, shownColumns } from '../../../support/query/campaigns.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query/tables.ts'

// The last two have the same code.
const slugs = ['lamp', 'boat', 'plumless', 'buckeroo']
let store: QueryTables
let statements: string[]
let clock: number
let follower: ListFollower

beforeAll(async () => {
  store = await openQueryTables()
})
afterAll(() => store.close())
beforeEach(async () => {
  await store.clear()
  clock = 0
  statements = []
  follower = createListFollower(
    counted(),
    store.databases,
    { statementMsMax: 10_000, campaignsMax: 1_000, freshMs: 0, reloadMs: 0, countMs: 0 },
    error => {
      throw error
    },
    { monotonicMs: () => clock },
  )
})

function counted(): Pick<Tables, 'rows'> {
  return {
    rows: <Row>(statement: Statement) => {
      statements.push(statement.query)
      return store.tables.rows<Row>(statement)
    },
  }
}

/** The id that a detail shows, or null. */
async function shown(slug: string, known: Pick<ListFollower, 'idOfSlug'> = follower): Promise<string | null> {
  const unused = () => Promise.reject(new Error('a detail reads no list'))
  const read = project.open({
    tables: counted(),
    databases: store.databases,
    lists: { page: unused, removals: unused },
    rows: { read: unused },
    slugs: known,
    options: readConfig({}),
  })
  try {
    const { body } = await (read('', { slug }) as Asked).load('', 0)
    const { data } = project.schema.parse(body) as { data: ProjectDetail }
    expect(data.slug).toBe(slug)
    return data.id
  } catch (error) {
    if (error instanceof NotFoundError) return null
    throw error
  }
}

const searched = (slug: string) => shown(slug, { idOfSlug: () => undefined })
const searches = () => statements.filter(query => query.includes('campaign_by_slug')).length

async function put(...rows: ReturnType<typeof campaignRow>[]): Promise<void> {
  const updated_at = new Date().toISOString().replace('T', ' ').replace('Z', '')
  await store.putCampaigns(rows.map(row => ({ ...row, updated_at })))
}

test('is read by id, without a search, as long as the index is not too old', async () => {
  await put(campaignRow('c1', { slug: 'lamp' }))
  await expect.poll(() => follower.current()).toBeDefined()
  expect(await shown('lamp')).toBe('c1')
  expect(searches()).toBe(0)
  clock = 10_000
  expect(await shown('lamp')).toBe('c1')
  expect(searches()).toBe(1)
})

test('is the same while campaigns come, go, change their slugs and share them', async () => {
  await put(campaignRow('c0', { slug: 'lamp' }))
  await expect.poll(() => follower.current()).toBeDefined()
  const change = fc.record({
    id: fc.constantFrom('c1', 'c2', 'c3'),
    slug: fc.constantFrom(...slugs),
    is_deleted: fc.constantFrom<0 | 1>(0, 0, 1),
    isSeen: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 5 }), async changes => {
      for (const { id, slug, is_deleted, isSeen } of changes) {
        await put(campaignRow(id, { slug: is_deleted ? '' : slug, is_deleted }))
        if (isSeen) await follower.current()
        for (const wanted of slugs) {
          const found = await shown(wanted)
          const first = await searched(wanted)
          // An index that has not seen the change may show another campaign that has the slug now (`shown` compares it).
          if (isSeen) expect(found).toBe(first)
          else expect(found === null).toBe(first === null)
        }
      }
    }),
    { numRuns: 12 },
  )
})

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

async function fieldsOf(id: string, slug: string) {
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
  const list = [...shownColumns('list'), 'updated_at']
  const { page, detail, byId } = await fieldsOf(id, slug)
  expect(page).toEqual(await viewed(id, list))
  expect(detail).toEqual(await viewed(id, [...list, ...shownColumns('detail')]))
  expect(byId).toEqual(detail)
}

const rows = [campaignRow('plain'), campaignRow('full', fullCampaign), awkward]

describe('what is shown', () => {
  test('is every field of a list and a detail, with the values of the views', async () => {
    await store.putCampaigns(rows)
    for (const { campaign_id, slug } of rows) await expectAsViewed(campaign_id, slug)
  })

  test('is the same if the server quotes numbers', async () => {
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

  test('finds by a shared slug the campaign with the smallest id that has it now', async () => {
    const slug = 'shared'
    await store.putCampaigns(['b', 'a', 'c'].map(id => campaignRow(id, { slug })))
    expect((await fieldsOf('a', slug)).detail?.campaign_id).toBe('a')
    await store.putCampaigns([campaignRow('a', { slug: 'left' })])
    expect((await fieldsOf('a', slug)).detail?.campaign_id).toBe('b')
    await store.putCampaigns([campaignRow('b', { is_deleted: 1, slug: '' })])
    expect((await fieldsOf('b', slug)).detail?.campaign_id).toBe('c')
    expect((await fieldsOf('b', slug)).page).toBeUndefined()
    await store.putCampaigns([campaignRow('0', { slug })])
    expect((await fieldsOf('0', slug)).detail?.campaign_id).toBe('0')
  })
})
