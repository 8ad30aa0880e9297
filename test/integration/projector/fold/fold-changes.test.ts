/**
 * What a fold writes, and what it leaves unchanged; and the figures of a campaign, exact to the last digit. That they follow from the
 * latest events, whatever their order, is in properties.test.ts.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencyCodes } from '../../../../contracts/events/currencies.ts'
import type { CampaignState, ChangeEvent } from '../../../../contracts/events/event.ts'
import { columns } from '../../../../contracts/tables/campaign-columns.ts'
import { foldCampaignsStatement } from '../../../../services/projector/fold/fold-statements.ts'
import { readModelOf } from '../../../support/events/model.ts'
import {
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  sampleCampaign,
  sampleReward,
} from '../../../support/events/sample-events.ts'
import { column, stepOf } from '../../../support/projector/fold-records.ts'
import { createTestFoldWorker, expectedReading } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const longMax = 2n ** 63n - 1n
const model = useFreshModel()
const notCounting = ['UNKNOWN', 'PENDING', 'CANCELLED', 'REFUNDED', 'FAILED'] as const

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

describe('a campaign’s figures', () => {
  test.each([
    ['JPY', '12345'],
    ['KWD', '12.345'],
    ['CLF', '1.2345'],
  ])('follow the digits of the platform’s currency: %s', async (currency, platform) => {
    const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', platform_amount_minor: 12_345 })
    await model.project([campaignEvent({ campaign_id: 'a' }), pledge], { currency })
    const query = `SELECT toString(pledged_platform_amount) AS value FROM ${model.databases.views}.campaigns`
    expect(await column(model.tables, query)).toEqual([platform])
  })

  test('are exact for any amounts, currencies, states of pledges, backers and tiers, and round a percentage half up', async () => {
    const long = fc.oneof(
      fc.bigInt({ min: 0n, max: longMax }),
      fc.bigInt({ min: 0n, max: 300n }),
      fc.constantFrom(0n, 1n, 2n ** 53n, 2n ** 53n + 1n, longMax - 1n, longMax),
    )
    const pledge = fc.record({
      amount_minor: long,
      platform_amount_minor: long,
      backer_id: fc.constantFrom('x', 'y', 'z'),
      status: fc.constantFrom('ACTIVE', 'COLLECTED', 'ACTIVE', 'COLLECTED', 'ACTIVE', ...notCounting),
      reward_id: fc.constantFrom('r', 'a tier that is gone', null),
    })
    const campaigns = fc.array(
      fc.record({
        currency: fc.constantFrom(...currencyCodes),
        // Of 20,000 and 64, small amounts are halves of a hundredth; of 20,001 just less.
        goal: fc.oneof(long, fc.constantFrom(0n, 3n, 64n, 20_000n, 20_001n)),
        // So few that some are sold more often than they are there.
        quantity: fc.constantFrom(0, 1, 2, longMax, null),
        pledges: fc.array(pledge, { maxLength: 5 }),
      }),
      { minLength: 150, maxLength: 150 },
    )
    const all: ChangeEvent[] = []
    await fc.assert(
      fc.asyncProperty(campaigns, async sample => {
        const events = sample.flatMap(({ currency, goal, quantity, pledges }, index) => {
          const campaign_id = `${all.length}-${index}`
          const rewards = [
            sampleReward({ reward_id: 'unclaimed', quantity_available: quantity }),
            sampleReward({ reward_id: 'r', quantity_available: quantity }),
          ]
          return [
            campaignEvent({ campaign_id, currency, goal_amount_minor: goal, rewards }),
            ...pledges.map((state, n) => pledgeEvent({ campaign_id, pledge_id: `p${n}`, ...state })),
          ]
        })
        all.push(...events)
        await model.project(events)
        expect(await model.views()).toEqual(expectedReading(readModelOf(all)))
      }),
      { numRuns: 3, endOnFailure: true },
    )
  })

  test('of tiers are counted within bounds of memory, with 1,000 tiers and 40,000 pledges that each name another', async () => {
    const { tables, databases, project } = model
    const tiers = 1_000
    const rewards = Array.from({ length: tiers }, (_, n) =>
      sampleReward({ reward_id: `r${n}`, quantity_available: 1 }),
    )
    await project([campaignEvent({ campaign_id: 'c', rewards })])
    // Every second tier is claimed once. The other pledges name tiers that the campaign does not have.
    await tables.run({
      query: `INSERT INTO ${databases.ledger}.pledge_ledger
              SELECT 'c', toString(number), 1, true, number, 100, 100, concat('r', toString(2 * number)), today()
              FROM numbers(40000) SETTINGS async_insert = 0`,
    })
    await project([pledgeEvent({ campaign_id: 'c', pledge_id: 'last', reward_id: 'r1' })])
    const term = await createTestFoldWorker(tables, databases).foldWorker.acquireLeadership()
    const step = { ...stepOf(9, term), memoryBytesMax: 400_000_000 }
    await tables.run(foldCampaignsStatement(databases, step, 'all'))
    expect(
      await tables.rows({
        query: `SELECT claimed, remaining, groupArray(reward_id)[2] AS second, count() AS tiers
                FROM (SELECT reward_id, quantity_claimed AS claimed, quantity_remaining AS remaining
                      FROM ${databases.views}.rewards)
                GROUP BY claimed, remaining ORDER BY claimed`,
      }),
    ).toEqual([
      { claimed: 0, remaining: 1, second: 'r5', tiers: 499 },
      { claimed: 1, remaining: 0, second: 'r1', tiers: 501 },
    ])
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
  const { campaign_id, version, changed_at, status, currency, creator, rewards, ...plain } = sampleCampaign({
    campaign_id: 'a',
  })
  const tier = sampleReward({ reward_id: 'r' })
  return [
    ...Object.entries(plain).map(([name, value]): ReturnType<typeof visibleChanges>[number] => [
      name,
      {},
      { [name]: exampleOfAdded(name) ?? otherThan(value) },
    ]),
    ['status', {}, { status: 'FUNDED' }],
    ['title, by a space', {}, { title: 'Title of a ' }],
    ['subtitle to null', {}, { subtitle: null }],
    ['subtitle from empty to null', { subtitle: '' }, { subtitle: null }],
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
    ['tags joined into one', {}, { tags: ['dicecards'] }],
    ['tags in another order', {}, { tags: ['cards', 'dice'] }],
    ['tags to none', {}, { tags: [] }],
    ['tags from none to an empty one', { tags: [] }, { tags: [''] }],
    ['launch_date from the epoch to null', { launch_date: 0 }, { launch_date: null }],
    ['end_date from the epoch to null', { end_date: 0 }, { end_date: null }],
    ['the creator’s name', {}, { creator: { ...creator, name: 'Anna' } }],
    ['the creator’s profile', {}, { creator: { ...creator, profile_url: 'https://x.example' } }],
    ['the creator’s picture from null', {}, { creator: { ...creator, avatar_url: 'https://x.example' } }],
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

/** Of a field that was added later. */
function exampleOfAdded(name: string): unknown {
  const added = columns.find(column => column.name === name && 'default' in column)
  return added?.type.includes('DateTime64') ? Date.parse(String(added.example)) : added?.example
}

function otherThan(value: unknown): unknown {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  return Array.isArray(value) ? value.slice(1) : `${value}x`
}
