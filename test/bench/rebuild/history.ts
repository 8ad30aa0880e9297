/**
 * The history that the rebuild bench replays: the platform of the other benches, as events. Each campaign comes twice, first submitted
 * and then public; each pledge comes once. It is computed from its size, and is the same in every run. Pure.
 */
import type { CampaignState, ChangeEvent, PublicStatus } from '../../../contracts/events/event.ts'
import { campaignEvent, pledgeEvent, sampleReward } from '../../support/events/sample-events.ts'
import { randomOf } from '../../support/runner/random.ts'
import { campaignIdOf, type PlatformSize } from '../platform/platform.ts'

export const campaignVersions = 2
const categories = 15

const seed = 20_180_101
const firstLaunch = Date.UTC(2018, 0, 1)
const launchSpanMs = 250_000_000_000
const dayMs = 86_400_000
const pledgesPerBacker = 3
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
export function* historyEvents(size: PlatformSize): Generator<ChangeEvent> {
  const random = randomOf(seed)
  const below = (bound: number) => Math.floor(random() * bound)
  const finals = Array.from({ length: size.campaigns }, () => below(statusesOfTen.length))
  for (let number = 0; number < size.campaigns; number++) {
    yield campaignOf(number, 1, 'SUBMITTED')
  }
  for (const [number, status] of finals.entries()) {
    yield campaignOf(number, campaignVersions, statusesOfTen[status] ?? 'LIVE')
  }
  for (let number = 0; number < size.pledges; number++) {
    yield pledgeOf(number, size, { random, below })
  }
}

/** Texts of 300 to 2,000 characters, and five tiers. Three of the tiers are limited. */
function campaignOf(number: number, version: number, status: CampaignState['status']): ChangeEvent {
  const launch_date = firstLaunch + ((number * 625_003) % launchSpanMs)
  return campaignEvent({
    campaign_id: campaignIdOf(number),
    version,
    changed_at: launch_date,
    status,
    slug: `campaign-${number}`,
    category: `Category ${(number * 7) % categories}`,
    goal_amount_minor: 10_000 + ((number * 7_919) % 10_000_000),
    launch_date,
    end_date: launch_date + 30 * dayMs,
    description: sentence.repeat(5 + (number % 30)),
    rewards: [1, 2, 3, 4, 5].map(tier =>
      sampleReward({
        reward_id: `tier-${tier}`,
        amount_minor: 1_000 * tier,
        quantity_available: tier % 2 === 0 ? null : 500,
      }),
    ),
  })
}

/** A few campaigns have very many pledges (the largest has one in seventy), most have a few. One in twenty does not count. */
function pledgeOf(
  number: number,
  { campaigns, pledges }: PlatformSize,
  { random, below }: { random: () => number; below: (bound: number) => number },
): ChangeEvent {
  const rank = Math.floor(campaigns * random() ** 3)
  const amount = 1_000 + below(10_000)
  return pledgeEvent({
    pledge_id: `p_${number}`,
    campaign_id: campaignIdOf((rank * spread) % campaigns),
    backer_id: `b_${below(Math.ceil(pledges / pledgesPerBacker))}`,
    changed_at: firstLaunch + number,
    status: number % 20 === 0 ? 'CANCELLED' : 'COLLECTED',
    amount_minor: amount,
    platform_amount_minor: amount,
    reward_id: number % 7 === 0 ? null : `tier-${(number % 5) + 1}`,
  })
}
