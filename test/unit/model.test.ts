import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CampaignState, ChangeEvent, PledgeState } from '../../contracts/events/event.ts'
import { shuffledWithNoise, worldEvents } from '../support/arbitraries.ts'
import { readModelOf } from '../support/model.ts'

function campaign(campaign_id: string, version: number, state: Partial<CampaignState> = {}): ChangeEvent {
  const data: CampaignState = {
    campaign_id,
    version,
    changed_at: 0,
    status: 'LIVE',
    slug: campaign_id,
    url: '',
    title: '',
    subtitle: null,
    category: 'Games',
    subcategory: null,
    location: null,
    image_url: null,
    currency: 'USD',
    goal_amount_minor: 1_000,
    campaign_type: '',
    project_type: '',
    is_staff_pick: false,
    has_adult_content: false,
    uses_ai: false,
    tags: [],
    follower_count: 0,
    launch_date: null,
    end_date: null,
    created_at: 0,
    creator: { creator_id: `creator of ${campaign_id}`, name: '', profile_url: '', avatar_url: null },
    description: '',
    risks: '',
    rewards: [],
    ...state,
  }
  return { type: 'campaign', key: campaign_id, data }
}

function pledge(key: string, version: number, state: Partial<PledgeState> = {}): ChangeEvent {
  const [campaign_id = '', pledge_id = ''] = key.split('/')
  const data: PledgeState = {
    pledge_id,
    campaign_id,
    backer_id: 'ann',
    version,
    changed_at: 0,
    status: 'ACTIVE',
    amount_minor: 100,
    platform_amount_minor: 200,
    reward_id: null,
    ...state,
  }
  return { type: 'pledge', key, data }
}

const tier = (reward_id: string, quantity_available: number | null) => ({
  reward_id,
  title: '',
  description: '',
  amount_minor: 100,
  quantity_available,
})

describe('the model that tests compare with', () => {
  test('a campaign’s totals are those of its counting pledges, each in its latest version', () => {
    const { campaigns } = readModelOf([
      campaign('c1', 2, { rewards: [tier('r1', 2), tier('r2', null), tier('r3', 0)] }),
      campaign('c1', 1, { status: 'DRAFT', rewards: [] }),
      pledge('c1/p1', 5, { amount_minor: 300, platform_amount_minor: 301, reward_id: 'r1' }),
      pledge('c1/p1', 4, { amount_minor: 999 }),
      pledge('c1/p2', 1, { status: 'COLLECTED', reward_id: 'r3' }),
      pledge('c1/p3', 1, { backer_id: 'bob', reward_id: 'r1' }),
      pledge('c1/p4', 1, { backer_id: 'cat', status: 'CANCELLED', reward_id: 'r1' }),
      pledge('c1/p5', 1, { backer_id: 'dan', reward_id: 'a tier that is gone' }),
    ])
    expect(campaigns.get('c1')).toMatchObject({
      pledgedMinor: 600n,
      pledgedPlatformMinor: 901n,
      pledgeCount: 4,
      backerCount: 3,
      rewards: [
        { rewardId: 'r1', claimed: 2, remaining: 0n },
        { rewardId: 'r2', claimed: 0, remaining: null },
        { rewardId: 'r3', claimed: 1, remaining: 0n },
      ],
    })
  })

  test('only the four public statuses show, and pledges of hidden or unknown campaigns are in no total', () => {
    const { campaigns, categories, platform } = readModelOf([
      campaign('c1', 1, {
        status: 'FUNDED',
        creator: { creator_id: 'k', name: '', profile_url: '', avatar_url: null },
      }),
      campaign('c2', 1, {
        status: 'FAILED',
        creator: { creator_id: 'k', name: '', profile_url: '', avatar_url: null },
      }),
      campaign('c3', 1, { status: 'SUSPENDED' }),
      campaign('c4', 1, { status: 'UNKNOWN' }),
      campaign('c5', 1, { status: 'CANCELLED', category: 'Art' }),
      pledge('c1/p1', 1),
      pledge('c2/p1', 1),
      pledge('c3/p1', 1, { backer_id: 'eve' }),
      pledge('nowhere/p1', 1, { backer_id: 'fay' }),
    ])
    expect([...campaigns.keys()].sort()).toEqual(['c1', 'c2', 'c5'])
    expect(categories.get('Games')).toEqual({
      projectCount: 2,
      liveCount: 0,
      fundedCount: 1,
      pledgeCount: 2,
      pledgedPlatformMinor: 400n,
    })
    expect(platform).toEqual({
      totalRaisedMinor: 400n,
      totalPledges: 2,
      totalBackers: 1,
      totalCreators: 2,
      projectsTotal: 3,
      projectsLive: 0,
      projectsFunded: 1,
      projectsFailed: 1,
      projectsCancelled: 1,
    })
  })

  test('a tombstone outranks every version, before and after it', () => {
    const { campaigns } = readModelOf([
      campaign('c1', 1),
      { type: 'pledge', key: 'c1/p1', data: null },
      pledge('c1/p1', Number.MAX_SAFE_INTEGER),
      campaign('c2', 1),
      { type: 'campaign', key: 'c2', data: null },
      campaign('c2', 2),
    ])
    expect([...campaigns.keys()]).toEqual(['c1'])
    expect(campaigns.get('c1')?.pledgeCount).toBe(0)
  })

  test('sums are exact beyond what a double holds', () => {
    const large = 2n ** 53n + 1n
    const { campaigns } = readModelOf([
      campaign('c1', 1),
      pledge('c1/p1', 1, { amount_minor: large }),
      pledge('c1/p2', 1, { amount_minor: 1 }),
    ])
    expect(campaigns.get('c1')?.pledgedMinor).toBe(large + 1n)
  })

  test('order, repetition and stale versions change nothing', () => {
    fc.assert(
      fc.property(
        worldEvents().chain(events => fc.tuple(fc.constant(events), shuffledWithNoise(events))),
        ([events, noisy]) => {
          const expected = readModelOf(events)
          const actual = readModelOf(noisy)
          expect(byKey(actual.campaigns)).toEqual(byKey(expected.campaigns))
          expect(byKey(actual.categories)).toEqual(byKey(expected.categories))
          expect(actual.platform).toEqual(expected.platform)
        },
      ),
      { numRuns: 300 },
    )
  })
})

function byKey<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}
