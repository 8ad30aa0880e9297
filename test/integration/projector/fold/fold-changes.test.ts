/** What a fold writes, and what it leaves unchanged. */
import { describe, expect, test } from 'vitest'
import type { CampaignState } from '../../../../contracts/events/event.ts'
import { readModelOf } from '../../../support/events/model.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  sampleCampaign,
  sampleReward,
} from '../../../support/events/sample-events.ts'
import { clockOf, column } from '../../../support/projector/fold-records.ts'
import { expectedReading } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const longMax = 2n ** 63n - 1n
const model = useFreshModel()

describe('the fold', () => {
  test('writes the campaigns that changed and no other, and moves only their stamps', async () => {
    const events = [
      ...['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
    ]
    await stopMerges()
    await model.project(events)
    const before = { rows: await writtenRows(), stamps: await model.stamps() }
    await model.project(events)
    await model.project([
      pledgeEvent({ campaign_id: 'a', pledge_id: 'q', status: 'PENDING' }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: 2, changed_at: 0 }),
      campaignEvent({ campaign_id: 'b', version: 2, changed_at: 0 }),
    ])
    expect({ rows: await writtenRows(), stamps: await model.stamps() }).toEqual(before)
    await model.project([
      campaignEvent({ campaign_id: 'a', version: 2, title: 'New' }),
      pledgeEvent({ campaign_id: 'b', pledge_id: 'p' }),
      campaignEvent({ campaign_id: 'c', version: 2 }),
    ])
    const after = await model.stamps()
    expect(after.a).toBeGreaterThan(before.stamps.a ?? 0)
    expect(after.b).toBeGreaterThan(before.stamps.b ?? 0)
    expect(after.c).toBe(before.stamps.c)
    expect((await writtenRows()).map(({ id }) => id).toSorted()).toEqual(['a', 'a', 'b', 'b', 'c'])
  })

  test('gives all changes of one fold the same stamp, from ClickHouse’s clock', async () => {
    const before = await clockOf(model.tables)
    await model.project(['a', 'b', 'c'].map(campaign_id => campaignEvent({ campaign_id })))
    const [stamp, ...others] = new Set(Object.values(await model.stamps()))
    expect(others).toEqual([])
    expect(stamp).toBeGreaterThanOrEqual(before)
    expect(stamp).toBeLessThanOrEqual(await clockOf(model.tables))
  })

  test('moves the stamp and shows the change when any visible field changes, also from empty to null', async () => {
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
    await model.project([...changes.map(({ before }) => before), ...pledges])
    const before = await model.stamps()
    await model.project(changes.map(({ after }) => after))
    const after = await model.stamps()
    const unmoved = changes.filter(({ campaign_id: id }) => !((after[id] ?? 0) > (before[id] ?? 0)))
    expect(unmoved.map(({ what }) => what)).toEqual([])
    const events = [...changes.map(change => change.after), ...pledges]
    expect(await model.views()).toEqual(expectedReading(readModelOf(events)))
  })

  test('a change that the views do not show keeps the stamp, and still counts in the totals', async () => {
    const { creator } = sampleCampaign({ campaign_id: 'a' })
    const moved = { ...creator, creator_id: 'creator-2' }
    await model.project([campaignEvent({ campaign_id: 'a' }), campaignEvent({ campaign_id: 'b' })])
    const before = await model.stamps()
    await model.project([campaignEvent({ campaign_id: 'a', version: 2, creator: moved })])
    expect(await model.stamps()).toEqual(before)
    expect((await model.views()).totals).toMatchObject([{ total_creators: 2 }])
  })

  test('gives a campaign that comes back a later stamp than its removal, wherever the clock stands', async () => {
    const { tables, databases } = model
    await model.project([campaignEvent({ campaign_id: 'a' })])
    const removedAt = Date.now() + 60_000
    await tables.run({
      query: `INSERT INTO ${databases.read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
              SELECT 'a', '', fromUnixTimestamp64Milli(${removedAt}, 'UTC'), fold_id + 1, 1 FROM ${databases.read}.campaigns`,
    })
    await model.project([campaignEvent({ campaign_id: 'a', version: 2, status: 'SUSPENDED' })])
    await model.project([campaignEvent({ campaign_id: 'a', version: 3 })])
    expect(await model.stamps()).toEqual({ a: removedAt + 1 })
  })

  test('writes one row, and no content, for a campaign that is no longer public, however often it is folded', async () => {
    await stopMerges()
    const hidden = [2, 3].map(version => campaignEvent({ campaign_id: 'a', version, status: 'DRAFT' }))
    const events = [campaignEvent({ campaign_id: 'a' }), ...hidden, campaignTombstone('a')]
    await model.project(events, { batchSize: 1 })
    const rows = await model.tables.rows({
      query: `SELECT is_deleted, title, slug, description, length(rewards) AS tiers
              FROM ${model.databases.read}.campaigns WHERE campaign_id != '' ORDER BY fold_id`,
    })
    expect(rows).toMatchObject([
      { is_deleted: 0, title: 'Title of a' },
      { is_deleted: 1, title: '', slug: '', description: '', tiers: 0 },
    ])
  })

  test('writes nothing for a campaign that was never public', async () => {
    await model.project([
      campaignEvent({ campaign_id: 'a', status: 'DRAFT' }),
      campaignEvent({ campaign_id: 'b', status: 'UNKNOWN' }),
      campaignTombstone('c'),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
      pledgeEvent({ campaign_id: 'never seen', pledge_id: 'p' }),
    ])
    expect(await writtenRows()).toEqual([])
  })

  test('distinguishes versions in microseconds, and versions too large for a double', async () => {
    const micros = 1_790_000_000_000_001
    await model.project([
      campaignEvent({ campaign_id: 'a', version: micros, title: 'micros, later' }),
      campaignEvent({ campaign_id: 'b', version: longMax - 1n, title: 'huge, later' }),
      campaignEvent({ campaign_id: 'c', version: 2n ** 53n + 1n, title: 'odd, later' }),
    ])
    await model.project([
      campaignEvent({ campaign_id: 'a', version: micros - 1, title: 'micros, earlier' }),
      campaignEvent({ campaign_id: 'b', version: longMax - 2n, title: 'huge, earlier' }),
      campaignEvent({ campaign_id: 'c', version: 2 ** 53 - 1, title: 'odd, earlier' }),
    ])
    const titles = await column(
      model.tables,
      `SELECT title AS value FROM ${model.databases.views}.campaigns ORDER BY title`,
    )
    expect(titles).toEqual(['huge, later', 'micros, later', 'odd, later'])
  })

  test('finds the new row by slug when an index granule of the old row matches, and the reverse', async () => {
    await stopMerges()
    await model.project([campaignEvent({ campaign_id: 'a', slug: 'old' })])
    await model.project([campaignEvent({ campaign_id: 'a', version: 2, slug: 'new' })])
    expect(await bySlug('new')).toEqual([{ campaign_id: 'a' }])
    expect(await bySlug('old')).toEqual([])
  })
})

/** So that no row disappears while a test counts rows. */
async function stopMerges(): Promise<void> {
  await model.tables.run({ query: `SYSTEM STOP MERGES ${model.databases.read}.campaigns` })
}

/** Every row that was ever written to the campaigns' read table, including superseded and deleted rows. */
async function writtenRows(): Promise<{ id: string; foldId: string }[]> {
  return model.tables.rows({
    query: `SELECT campaign_id AS id, toString(fold_id) AS foldId FROM ${model.databases.read}.campaigns WHERE campaign_id != ''`,
  })
}

async function bySlug(slug: string): Promise<unknown[]> {
  return model.tables.rows({
    query: `SELECT campaign_id FROM ${model.databases.views}.campaigns WHERE slug = {slug:String}`,
    query_params: { slug },
  })
}

/** Each visible field, with a state before and a state after that differ only in it, also empty against null. */
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
    ['image_url to null', {}, { image_url: null }],
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
    ['the creator’s picture from null', {}, { creator: { ...creator, avatar_url: 'https://x.example' } }],
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
