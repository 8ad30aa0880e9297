/**
 * The history that the rebuild bench replays: the cold bench's platform, as events. Each campaign comes twice, first submitted
 * and then public; each pledge comes once. It is computed from its size, and is the same in every run. Pure.
 */
import type { CampaignState, PledgeState, PublicStatus, StateEvent } from '../../../contracts/events/event.ts'
import { randomOf } from '../../support/runner/random.ts'
import { campaignIdOf, type PlatformSize } from '../platform/platform.ts'

export const campaignVersions = 2
export const categories = 15

const seed = 20_180_101
const firstLaunch = Date.UTC(2018, 0, 1)
const launchSpanMs = 250_000_000_000
const dayMs = 86_400_000
const creators = 300_000
const pledgesPerBacker = 3
const currencies = ['USD', 'EUR', 'GBP', 'JPY'] as const
const sentence = 'What it is, who makes it, and why it is worth a pledge. '
// Prime, so that the campaigns with very many pledges are spread over the ids.
const spread = 279_470_273
// One campaign in ten is live, four are funded, four have failed and one was cancelled.
const statusesOfTen: readonly PublicStatus[] = [
  'LIVE',
  ...Array<PublicStatus>(4).fill('FUNDED'),
  ...Array<PublicStatus>(4).fill('FAILED'),
  'CANCELLED',
]

export function eventCount({ campaigns, pledges }: PlatformSize): number {
  return campaigns * campaignVersions + pledges
}

/** Campaigns first, in the order of their versions, then pledges. The log has a topic for each. */
export function* historyEvents(size: PlatformSize): Generator<StateEvent> {
  const random = randomOf(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const finals = Array.from({ length: size.campaigns }, () => below(statusesOfTen.length))
  for (let number = 0; number < size.campaigns; number++) {
    yield { type: 'campaign', data: campaignOf(number, 1, 'SUBMITTED') }
  }
  for (const [number, status] of finals.entries()) {
    yield { type: 'campaign', data: campaignOf(number, campaignVersions, statusesOfTen[status] ?? 'LIVE') }
  }
  for (let number = 0; number < size.pledges; number++) {
    yield { type: 'pledge', data: pledgeOf(number, size, { random, below }) }
  }
}

/** Texts of 300 to 2,000 characters, and five tiers. Three of the tiers are limited. */
function campaignOf(number: number, version: number, status: CampaignState['status']): CampaignState {
  const name = `campaign-${number}`
  const creator = number % creators
  const launchDate = firstLaunch + ((number * 625_003) % launchSpanMs)
  return {
    campaign_id: campaignIdOf(number),
    version,
    changed_at: launchDate,
    status,
    slug: name,
    url: `https://crowdfunding.example/projects/${name}`,
    title: `Campaign number ${number}`,
    subtitle: 'Something that nobody has made before',
    category: `Category ${(number * 7) % categories}`,
    subcategory: `Subcategory ${number % 150}`,
    location: `Town ${number % 1_000}`,
    image_url: `https://img.crowdfunding.example/${name}.jpg`,
    currency: currencies[number % currencies.length] ?? 'USD',
    goal_amount_minor: 10_000 + ((number * 7_919) % 10_000_000),
    campaign_type: 'ALL_OR_NOTHING',
    project_type: 'GENERAL',
    is_staff_pick: number % 10 === 0,
    has_adult_content: number % 50 === 0,
    uses_ai: number % 20 === 0,
    tags: ['made', 'by hand'],
    follower_count: (number * 31) % 10_000,
    launch_date: launchDate,
    end_date: launchDate + 30 * dayMs,
    created_at: launchDate - 14 * dayMs,
    creator: {
      creator_id: `u_${creator}`,
      name: `Creator ${creator}`,
      profile_url: `https://crowdfunding.example/creators/${creator}`,
      avatar_url: null,
    },
    description: sentence.repeat(5 + (number % 30)),
    risks: 'Schedules may slip.',
    rewards: [1, 2, 3, 4, 5].map(tier => ({
      reward_id: `tier-${tier}`,
      title: `Tier ${tier}`,
      description: 'What a backer gets, and when it is sent',
      amount_minor: 1_000 * tier,
      quantity_available: tier % 2 === 0 ? null : 500,
    })),
  }
}

/** A few campaigns have very many pledges (the largest has one in seventy), most have a few. One in twenty does not count. */
function pledgeOf(
  number: number,
  { campaigns, pledges }: PlatformSize,
  { random, below }: { random: () => number; below: (bound: number) => number },
): PledgeState {
  const rank = Math.floor(campaigns * random() ** 3)
  const amount = 1_000 + below(10_000)
  return {
    pledge_id: `p_${number}`,
    campaign_id: campaignIdOf((rank * spread) % campaigns),
    backer_id: `b_${below(Math.ceil(pledges / pledgesPerBacker))}`,
    version: 1,
    changed_at: firstLaunch + number,
    status: number % 20 === 0 ? 'CANCELLED' : 'COLLECTED',
    amount_minor: amount,
    platform_amount_minor: amount,
    reward_id: number % 7 === 0 ? null : `tier-${(number % 5) + 1}`,
  }
}
