/** What a fold writes, and what it leaves alone. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CampaignState, ChangeEvent } from '../../../contracts/events/event.ts'
import type { Folder } from '../../../services/projector/folder.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { readModelOf } from '../../support/model.ts'
import {
  createIngest,
  createTestFolder,
  expectedReading,
  type ModelTables,
  openModelTables,
  readViews,
} from '../../support/model-tables.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
  sampleCampaign,
  sampleReward,
} from '../../support/sample-events.ts'

const longMax = 2n ** 63n - 1n

describe('the fold', () => {
  let model: ModelTables
  let databases: Databases
  let ingest: (events: readonly ChangeEvent[]) => Promise<void>
  let folder: Folder

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
    folder = createTestFolder(model.tables, databases).folder
    await folder.takeOver()
    return () => model.drop(databases)
  })

  async function project(events: readonly ChangeEvent[]): Promise<void> {
    await ingest(events)
    await folder.fold()
  }

  /** Every row that was ever written of the campaigns' read table, superseded and deleted ones included. */
  async function writtenRows(): Promise<{ id: string; foldId: string }[]> {
    return model.tables.rows({
      query: `SELECT campaign_id AS id, toString(fold_id) AS foldId FROM ${databases.model}.campaigns`,
    })
  }

  async function stamps(): Promise<Record<string, number>> {
    const rows = await model.tables.rows<{ id: string; at: number }>({
      query: `SELECT campaign_id AS id, toUnixTimestamp64Milli(updated_at) AS at FROM ${databases.views}.campaigns`,
    })
    return Object.fromEntries(rows.map(({ id, at }) => [id, at]))
  }

  async function titles(): Promise<string[]> {
    const rows = await model.tables.rows<{ title: string }>({
      query: `SELECT title FROM ${databases.views}.campaigns ORDER BY title`,
    })
    return rows.map(({ title }) => title)
  }

  /** Nothing may merge rows away while a test counts them. */
  async function stopMerges(): Promise<void> {
    await model.tables.run({ query: `SYSTEM STOP MERGES ${databases.model}.campaigns` })
  }

  test('that changes nothing writes nothing, and every stamp stays', async () => {
    await stopMerges()
    const events = [
      campaignEvent({ campaign_id: 'a' }),
      campaignEvent({ campaign_id: 'b' }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
    ]
    await project(events)
    const before = { rows: await writtenRows(), stamps: await stamps() }
    await project(events)
    await project([
      pledgeEvent({ campaign_id: 'a', pledge_id: 'q', status: 'PENDING' }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: 2, changed_at: 0 }),
      campaignEvent({ campaign_id: 'b', version: 2, changed_at: 0 }),
    ])
    expect({ rows: await writtenRows(), stamps: await stamps() }).toEqual(before)
  })

  test('writes the campaigns that changed and no other, and moves their stamps alone', async () => {
    await stopMerges()
    await project(['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })))
    const before = await stamps()
    await project([
      campaignEvent({ campaign_id: 'a', version: 2, title: 'New' }),
      pledgeEvent({ campaign_id: 'b', pledge_id: 'p' }),
      campaignEvent({ campaign_id: 'c', version: 2 }),
    ])
    const after = await stamps()
    expect(after.a).toBeGreaterThan(before.a ?? 0)
    expect(after.b).toBeGreaterThan(before.b ?? 0)
    expect(after.c).toBe(before.c)
    expect((await writtenRows()).map(({ id }) => id).toSorted()).toEqual(['a', 'a', 'b', 'b', 'c'])
  })

  test('stamps all changes of one fold alike, with ClickHouse’s own time', async () => {
    const clock = async (): Promise<number> => {
      const [row] = await model.tables.rows<{ now: number }>({
        query: "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now",
      })
      return row?.now ?? Number.NaN
    }
    const before = await clock()
    await project(['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })))
    const [stamp, ...others] = new Set(Object.values(await stamps()))
    expect(others).toEqual([])
    expect(stamp).toBeGreaterThanOrEqual(before)
    expect(stamp).toBeLessThanOrEqual(await clock())
  })

  test('moves the stamp and shows the change where any one visible field changed, empty to null included', async () => {
    const changes = visibleChanges().map(([what, from, to], index) => {
      const campaign_id = `c${index}`
      return {
        what,
        campaign_id,
        before: campaignEvent({ slug: campaign_id, ...from, campaign_id }),
        after: campaignEvent({ slug: campaign_id, ...from, ...to, campaign_id, version: 2 }),
        pledge: pledgeEvent({ campaign_id, pledge_id: 'p', reward_id: 'r' }),
      }
    })
    const pledges = changes.map(({ pledge }) => pledge)
    await project([...changes.map(({ before }) => before), ...pledges])
    const before = await stamps()
    await project(changes.map(({ after }) => after))
    const after = await stamps()
    const unmoved = changes.filter(({ campaign_id: id }) => !((after[id] ?? 0) > (before[id] ?? 0)))
    expect(unmoved.map(({ what }) => what)).toEqual([])
    const events = [...changes.map(change => change.after), ...pledges]
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
  })

  test('a change that the views do not show keeps the stamp, and still counts in the totals', async () => {
    const { creator } = sampleCampaign({ campaign_id: 'a' })
    await project([campaignEvent({ campaign_id: 'a' }), campaignEvent({ campaign_id: 'b' })])
    const before = await stamps()
    const moved = campaignEvent({
      campaign_id: 'a',
      version: 2,
      creator: { ...creator, creator_id: 'creator-2' },
    })
    await project([moved])
    expect(await stamps()).toEqual(before)
    expect((await readViews(model.tables, databases)).totals).toMatchObject([{ total_creators: 2 }])
  })

  test('takes a campaign that left the public out of every view, and brings it back whole', async () => {
    const live = campaignEvent({ campaign_id: 'a', rewards: [sampleReward({ reward_id: 'r' })] })
    const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', reward_id: 'r' })
    const nothing = expectedReading(readModelOf([]))
    await project([live, pledge])
    const before = await stamps()
    await project([campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' })])
    expect(await readViews(model.tables, databases)).toEqual(nothing)
    await project([pledgeEvent({ campaign_id: 'a', pledge_id: 'q' })])
    expect(await readViews(model.tables, databases)).toEqual(nothing)
    const back = campaignEvent({ campaign_id: 'a', version: 3 })
    await project([back])
    const events = [back, pledge, pledgeEvent({ campaign_id: 'a', pledge_id: 'q' })]
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf(events)))
    expect((await stamps()).a).toBeGreaterThan(before.a ?? 0)
  })

  test('writes one row, and no content, of a campaign that left the public, however often it is looked at', async () => {
    await stopMerges()
    await project([campaignEvent({ campaign_id: 'a' })])
    await project([campaignEvent({ campaign_id: 'a', version: 2, status: 'DRAFT' })])
    await project([campaignEvent({ campaign_id: 'a', version: 3, status: 'DRAFT' })])
    await project([campaignTombstone('a')])
    const rows = await model.tables.rows({
      query: `SELECT is_deleted, title, slug, description, length(rewards) AS tiers
              FROM ${databases.model}.campaigns ORDER BY fold_id`,
    })
    expect(rows).toMatchObject([
      { is_deleted: 0, title: 'Title of a' },
      { is_deleted: 1, title: '', slug: '', description: '', tiers: 0 },
    ])
  })

  test('writes nothing at all of a campaign that never was public', async () => {
    await project([
      campaignEvent({ campaign_id: 'a', status: 'DRAFT' }),
      campaignEvent({ campaign_id: 'b', status: 'UNKNOWN' }),
      campaignTombstone('c'),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
      pledgeEvent({ campaign_id: 'never seen', pledge_id: 'p' }),
    ])
    expect(await writtenRows()).toEqual([])
  })

  test('ranks a tombstone after every version, whichever comes first', async () => {
    const last = campaignEvent({ campaign_id: 'a', version: longMax })
    await project([last])
    await project([campaignTombstone('a')])
    expect(await titles()).toEqual([])
    await project([last])
    expect(await titles()).toEqual([])
    await project([campaignTombstone('b'), campaignEvent({ campaign_id: 'b', version: longMax })])
    expect(await titles()).toEqual([])

    const other = campaignEvent({ campaign_id: 'c' })
    const kept = pledgeEvent({ campaign_id: 'c', pledge_id: 'kept' })
    const gone = pledgeEvent({ campaign_id: 'c', pledge_id: 'gone', version: longMax })
    await project([other, kept, pledgeTombstone('c', 'gone'), gone])
    expect(await readViews(model.tables, databases)).toEqual(expectedReading(readModelOf([other, kept])))
  })

  test('tells versions apart that are microseconds, and those beyond what a double holds', async () => {
    const micros = 1_790_000_000_000_001
    await project([campaignEvent({ campaign_id: 'a', version: micros, title: 'micros, later' })])
    await project([campaignEvent({ campaign_id: 'a', version: micros - 1, title: 'micros, earlier' })])
    await project([campaignEvent({ campaign_id: 'b', version: longMax - 1n, title: 'huge, later' })])
    await project([campaignEvent({ campaign_id: 'b', version: longMax - 2n, title: 'huge, earlier' })])
    await project([campaignEvent({ campaign_id: 'c', version: 2n ** 53n + 1n, title: 'odd, later' })])
    await project([campaignEvent({ campaign_id: 'c', version: 2 ** 53 - 1, title: 'odd, earlier' })])
    expect(await titles()).toEqual(['huge, later', 'micros, later', 'odd, later'])
  })

  test('takes a slug along when it passes from one campaign to another', async () => {
    await project([campaignEvent({ campaign_id: 'a', slug: 'wanted' })])
    await project([
      campaignEvent({ campaign_id: 'a', version: 2, slug: 'renamed' }),
      campaignEvent({ campaign_id: 'b', slug: 'wanted' }),
    ])
    const rows = await model.tables.rows({
      query: `SELECT campaign_id FROM ${databases.views}.campaigns WHERE slug = 'wanted'`,
    })
    expect(rows).toEqual([{ campaign_id: 'b' }])
  })

  test('finds the new row by slug where an index granule of the old one matches, and the other way round', async () => {
    await stopMerges()
    await project([campaignEvent({ campaign_id: 'a', slug: 'old' })])
    await project([campaignEvent({ campaign_id: 'a', version: 2, slug: 'new' })])
    const bySlug = (slug: string) =>
      model.tables.rows({
        query: `SELECT campaign_id FROM ${databases.views}.campaigns WHERE slug = {slug:String}`,
        query_params: { slug },
      })
    expect(await bySlug('new')).toEqual([{ campaign_id: 'a' }])
    expect(await bySlug('old')).toEqual([])
  })
})

/** Each visible field, with a state before and one after that differ in it alone: also empty against null. */
function visibleChanges(): [string, Partial<CampaignState>, Partial<CampaignState>][] {
  const { creator } = sampleCampaign({ campaign_id: 'a' })
  const tier = sampleReward({ reward_id: 'r' })
  return [
    ['status', {}, { status: 'FUNDED' }],
    ['slug', {}, { slug: 'other' }],
    ['url', {}, { url: 'https://other.example' }],
    ['title', {}, { title: 'Other' }],
    ['title, by a space', {}, { title: 'Title of a ' }],
    ['subtitle to null', {}, { subtitle: null }],
    ['subtitle from empty to null', { subtitle: '' }, { subtitle: null }],
    ['category', {}, { category: 'Comics' }],
    ['subcategory from empty to null', { subcategory: '' }, { subcategory: null }],
    ['location from empty to null', { location: '' }, { location: null }],
    ['image_url from empty to null', { image_url: '' }, { image_url: null }],
    [
      'text that moves to the next field',
      { subtitle: 'ab', category: 'c' },
      { subtitle: 'a', category: 'bc' },
    ],
    ['currency', {}, { currency: 'JPY' }],
    ['currency of the same digits', {}, { currency: 'USD' }],
    ['goal', {}, { goal_amount_minor: 100_001 }],
    ['campaign_type', {}, { campaign_type: 'KEEP_IT_ALL' }],
    ['project_type', {}, { project_type: 'COMIC' }],
    ['is_staff_pick', {}, { is_staff_pick: true }],
    ['has_adult_content', {}, { has_adult_content: true }],
    ['uses_ai', {}, { uses_ai: true }],
    ['tags joined into one', {}, { tags: ['dicecards'] }],
    ['tags in another order', {}, { tags: ['cards', 'dice'] }],
    ['tags to none', {}, { tags: [] }],
    ['tags from none to an empty one', { tags: [] }, { tags: [''] }],
    ['follower_count', {}, { follower_count: 4 }],
    ['launch_date from the epoch to null', { launch_date: 0 }, { launch_date: null }],
    ['end_date by a millisecond', {}, { end_date: Date.UTC(2026, 2, 1) + 1 }],
    ['end_date from the epoch to null', { end_date: 0 }, { end_date: null }],
    ['created_at', {}, { created_at: 0 }],
    ['the creator’s name', {}, { creator: { ...creator, name: 'Anna' } }],
    ['the creator’s profile', {}, { creator: { ...creator, profile_url: 'https://x.example' } }],
    ['the creator’s picture from null to empty', {}, { creator: { ...creator, avatar_url: '' } }],
    ['description', {}, { description: 'Other' }],
    ['risks', {}, { risks: 'Other' }],
    ['a new tier', {}, { rewards: [tier] }],
    ['a tier’s title', { rewards: [tier] }, { rewards: [{ ...tier, title: 'Other' }] }],
    ['a tier’s price', { rewards: [tier] }, { rewards: [{ ...tier, amount_minor: 1 }] }],
    ['a tier from unlimited to none', { rewards: [tier] }, { rewards: [{ ...tier, quantity_available: 0 }] }],
    [
      'text that moves from a tier’s title to its description',
      { rewards: [{ ...tier, title: 'ab', description: 'c' }] },
      { rewards: [{ ...tier, title: 'a', description: 'bc' }] },
    ],
    [
      'the order of tiers',
      { rewards: [tier, { ...tier, reward_id: 's' }] },
      { rewards: [{ ...tier, reward_id: 's' }, tier] },
    ],
  ]
}
