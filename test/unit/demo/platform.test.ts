import { describe, expect, test } from 'vitest'
import { encodeState } from '../../../contracts/events/codec.ts'
import {
  type CampaignState,
  type ChangeEvent,
  isPublicStatus,
  keyOf,
  type PledgeState,
  type StateEvent,
} from '../../../contracts/events/event.ts'
import { faultOf } from '../../../contracts/events/rules.ts'
import { catalog } from '../../../services/demo/catalog.ts'
import { demoCurrencies, platformCurrency } from '../../../services/demo/money.ts'
import { demoEvents } from '../../../services/demo/platform.ts'
import { statusShares } from '../../../services/demo/schedule.ts'
import { readModelOf } from '../../support/model.ts'

const now = Date.UTC(2026, 10, 20, 12, 34, 56, 789)

/** A platform's events, with what the tests ask of it. */
function platformOf(seed: string | number, campaigns?: number) {
  const events = [...demoEvents({ seed, now, ...(campaigns !== undefined && { campaigns }) })]
  const latestCampaigns = new Map<string, CampaignState>()
  const latestPledges = new Map<string, PledgeState>()
  for (const event of events) {
    if (event.type === 'campaign') latestCampaigns.set(event.data.campaign_id, event.data)
    if (event.type === 'pledge') latestPledges.set(keyOf(event), event.data)
  }
  return {
    events,
    campaigns: [...latestCampaigns.values()],
    pledges: [...latestPledges.values()],
    model: readModelOf(events.map(toChange)),
  }
}

function toChange(event: StateEvent): ChangeEvent {
  return { ...event, key: keyOf(event) }
}

const platform = platformOf(20_180_101)
const { events, campaigns, pledges, model } = platform
const readings = [...model.campaigns.values()]

describe('the demo platform’s events', () => {
  test('every one keeps the rules of the contract and fits the schema', () => {
    const faults = events.flatMap(event => faultOf(toChange(event)) ?? [])
    expect(faults).toEqual([])
    for (const event of events) encodeState(event)
  })

  test('they come in order of time, none is later than now, and each entity’s versions grow', () => {
    const times = events.map(({ data }) => data.changed_at)
    expect(times.filter((time, i) => time < (times[i - 1] ?? 0) || time > now)).toEqual([])
    const versions = new Map<string, number>()
    const wrong = events.filter(event => {
      const version = Number(event.data.version)
      const before = versions.get(keyOf(event)) ?? 0
      versions.set(keyOf(event), version)
      return !Number.isSafeInteger(version) || version <= before
    })
    expect(wrong).toEqual([])
  })

  test('the same seed gives the same events, another seed other ones', () => {
    const again = [...demoEvents({ seed: 20_180_101, now })]
    const bytes = Buffer.concat(events.map(encodeState))
    expect(Buffer.concat(again.map(encodeState)).equals(bytes)).toBe(true)
    const others = platformOf('another', 40)
    const ids = new Set(campaigns.map(({ campaign_id }) => campaign_id))
    expect(others.campaigns.filter(({ campaign_id }) => ids.has(campaign_id))).toEqual([])
  })

  test('a pledge comes after its campaign’s launch, and never moves to another campaign or backer', () => {
    const launched = new Set<string>()
    const owners = new Map<string, string>()
    const wrong: StateEvent[] = []
    for (const event of events) {
      if (event.type === 'campaign' && event.data.launch_date !== null) launched.add(event.data.campaign_id)
      if (event.type !== 'pledge') continue
      const { pledge_id, campaign_id, backer_id } = event.data
      const owner = `${campaign_id} ${backer_id}`
      if (!launched.has(campaign_id) || (owners.get(pledge_id) ?? owner) !== owner) wrong.push(event)
      owners.set(pledge_id, owner)
    }
    expect(wrong).toEqual([])
    expect(owners.size).toBe(pledges.length)
  })

  test('any number of campaigns can be had', () => {
    expect(platformOf(1, 0).events).toEqual([])
    expect(platformOf(1, 1).campaigns).toHaveLength(1)
    expect(platformOf(1, 57).campaigns).toHaveLength(57)
  })
})

describe.each([20_180_101, 'b', 3])('the platform of seed %s is believable', seed => {
  const { campaigns, pledges, model } = seed === 20_180_101 ? platform : platformOf(seed)
  const readings = [...model.campaigns.values()]

  test('statuses have their shares, the hidden ones included', () => {
    expect(campaigns).toHaveLength(400)
    for (const [status, share] of Object.entries(statusShares)) {
      const count = campaigns.filter(campaign => campaign.status === status).length
      expect(Math.abs(count - 4 * share), status).toBeLessThanOrEqual(4)
    }
    const hidden = campaigns.filter(({ status }) => !isPublicStatus(status))
    expect(model.platform.projectsTotal).toBe(campaigns.length - hidden.length)
  })

  test('every category and currency is there', () => {
    const names = catalog().categories.map(({ name }) => name)
    expect([...model.categories.keys()].sort()).toEqual(names.sort())
    expect(new Set(campaigns.map(({ currency }) => currency))).toEqual(new Set(demoCurrencies))
  })

  test('who is funded has reached the goal, who failed has not', () => {
    for (const { campaign, pledgedMinor } of readings) {
      const goal = BigInt(campaign.goal_amount_minor)
      expect(goal).toBeGreaterThan(0n)
      if (campaign.status === 'FUNDED') expect(pledgedMinor).toBeGreaterThanOrEqual(goal)
      if (campaign.status === 'FAILED') expect(pledgedMinor).toBeLessThan(goal)
    }
  })

  test('live campaigns have begun and end in the future, the others have ended', () => {
    for (const { campaign } of readings) {
      expect(campaign.launch_date).toBeLessThanOrEqual(now)
      if (campaign.status === 'LIVE') expect(campaign.end_date).toBeGreaterThan(now)
      else expect(campaign.end_date).toBeLessThanOrEqual(now)
    }
    const hoursLeft = readings
      .filter(({ campaign }) => campaign.status === 'LIVE')
      .map(({ campaign }) => (Number(campaign.end_date) - now) / 3_600_000)
    expect(Math.min(...hoursLeft), 'something ends soon').toBeLessThan(2)
  })

  test('there are 30 to 60 thousand pledges, tens on most campaigns and thousands on a few', () => {
    expect(pledges.length).toBeGreaterThan(30_000)
    expect(pledges.length).toBeLessThan(60_000)
    const counts = readings.map(({ pledgeCount }) => pledgeCount).sort((a, b) => a - b)
    expect(counts[Math.floor(counts.length / 2)]).toBeGreaterThan(15)
    expect(counts[Math.floor(counts.length / 2)]).toBeLessThan(100)
    expect(counts.filter(count => count >= 1_000).length).toBeGreaterThanOrEqual(2)
    expect(counts.filter(count => count >= 1_000).length).toBeLessThan(20)
  })

  test('pledges have every status that a platform gives them', () => {
    const statuses = new Set(pledges.map(({ status }) => status))
    expect(statuses).toEqual(new Set(['PENDING', 'ACTIVE', 'COLLECTED', 'CANCELLED', 'REFUNDED', 'FAILED']))
  })

  test('limited tiers are never oversold, and some are sold out', () => {
    const limited = readings.flatMap(({ rewards }) => rewards).filter(({ remaining }) => remaining !== null)
    const quantities = new Map(
      readings.flatMap(({ campaign }) =>
        campaign.rewards.map(reward => [`${campaign.campaign_id} ${reward.reward_id}`, reward] as const),
      ),
    )
    for (const { campaign, rewards } of readings) {
      for (const { rewardId, claimed } of rewards) {
        const available = quantities.get(`${campaign.campaign_id} ${rewardId}`)?.quantity_available
        if (typeof available === 'number') expect(claimed).toBeLessThanOrEqual(available)
      }
    }
    expect(limited.filter(({ remaining }) => remaining === 0n).length).toBeGreaterThan(20)
    expect(limited.filter(({ remaining }) => remaining !== 0n).length).toBeGreaterThan(20)
  })

  test('backers back several campaigns, and creators have several', () => {
    const campaignsOf = Map.groupBy(pledges, ({ backer_id }) => backer_id)
    const several = [...campaignsOf.values()].filter(
      own => new Set(own.map(({ campaign_id }) => campaign_id)).size > 1,
    )
    expect(several.length).toBeGreaterThan(1_000)
    const byCreator = Map.groupBy(campaigns, ({ creator }) => creator.creator_id)
    expect([...byCreator.values()].filter(own => own.length > 1).length).toBeGreaterThan(40)
    expect(byCreator.size).toBeGreaterThan(150)
  })
})

describe('the demo platform as a visitor sees it', () => {
  test('slugs are URL-safe, and no two campaigns ever had the same', () => {
    const owners = new Map<string, string>()
    for (const event of events) {
      if (event.type !== 'campaign') continue
      const { slug, campaign_id, url } = event.data
      expect(slug).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
      expect(owners.get(slug) ?? campaign_id).toBe(campaign_id)
      expect(url).toBe(`https://crowdfunding.example/projects/${slug}`)
      owners.set(slug, campaign_id)
    }
  })

  test('campaigns evolve: drafts are written out, texts are amended, slugs change, followers only grow', () => {
    const histories = Map.groupBy(
      events.flatMap(event => (event.type === 'campaign' ? [event.data] : [])),
      ({ campaign_id }) => campaign_id,
    )
    const whileLive = [...histories.values()].map(states => states.filter(({ status }) => status === 'LIVE'))
    const changing = (field: 'description' | 'slug' | 'is_staff_pick' | 'rewards'): number =>
      whileLive.filter(states => new Set(states.map(state => JSON.stringify(state[field]))).size > 1).length
    expect(changing('description')).toBeGreaterThan(20)
    expect(changing('slug')).toBeGreaterThan(0)
    expect(changing('is_staff_pick')).toBeGreaterThan(10)
    expect(changing('rewards')).toBeGreaterThan(10)
    for (const states of histories.values()) {
      expect(states[0]?.status).toBe('DRAFT')
      const followers = states.map(({ follower_count }) => Number(follower_count))
      expect(followers).toEqual(followers.toSorted((a, b) => a - b))
    }
  })

  test('addresses are all on the example domain, and nothing looks like a person’s data', () => {
    for (const campaign of campaigns) {
      const text = JSON.stringify(campaign)
      for (const [address] of text.matchAll(/https?:[^"]*/g)) {
        expect(address).toMatch(/^https:\/\/crowdfunding\.example\//)
      }
      expect(text).not.toMatch(/[\w.]+@[\w.]+|\+?\d{2,}[ -]\d{3,}[ -]\d{3,}/)
    }
  })

  test('texts are complete, and titles hardly ever repeat', () => {
    for (const { campaign } of readings) {
      expect(campaign.title.length).toBeGreaterThan(3)
      expect(campaign.description.length).toBeGreaterThan(300)
      expect(campaign.risks.length).toBeGreaterThan(50)
      expect(campaign.rewards.length).toBeGreaterThanOrEqual(2)
      expect(`${campaign.title}${campaign.description}`).not.toMatch(/[{}]|undefined|NaN/)
    }
    expect(new Set(campaigns.map(({ title }) => title)).size).toBeGreaterThan(390)
  })

  test('platform amounts are exact where the currencies are the same, and integers everywhere', () => {
    const currencyOf = new Map(campaigns.map(({ campaign_id, currency }) => [campaign_id, currency]))
    const wrong = pledges.filter(
      ({ campaign_id, amount_minor, platform_amount_minor }) =>
        !Number.isInteger(platform_amount_minor) ||
        (currencyOf.get(campaign_id) === platformCurrency && platform_amount_minor !== amount_minor),
    )
    expect(wrong).toEqual([])
    expect(readings.some(({ campaign }) => campaign.currency === 'JPY')).toBe(true)
    expect(readings.some(({ campaign }) => campaign.currency === 'KWD')).toBe(true)
  })
})
