/**
 * The demo platform as events, and what the examples of `contracts/tables/examples` ask about: the campaigns as they are, and as
 * they were shown at the end of each day. It is computed from the events by the plain model (model.ts), without any SQL.
 */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { type ChangeEvent, keyOf } from '../../../contracts/events/event.ts'
import { type CampaignReading, percentText, readModelOf } from '../events/model.ts'
import { sampleCampaigns } from '../events/sample-campaigns.ts'

/** A public campaign. Amounts in major units. */
export interface Shown {
  id: string
  title: string
  category: string
  currency: string
  status: string
  goal: number
  pledged: number
  platform: number
  percent: number
  backers: number
  pledges: number
  followers: number
  isPick: boolean
  tags: readonly string[]
  creator: string
  /** Unix ms. */
  launch: number
  end: number
  tiers: readonly {
    title: string
    price: number
    available: number | null
    claimed: number
    left: number | null
  }[]
}

export interface ExampleWorld {
  now: number
  events: readonly ChangeEvent[]
  /** The public campaigns now. */
  shown: readonly Shown[]
  /** UTC days as days since 1970, from the first one of the history to today. */
  days: readonly number[]
  /** By day: the public campaigns at its end, by id. */
  history: ReadonlyMap<number, ReadonlyMap<string, Shown>>
}

export const dayMs = 86_400_000
const historyDays = 40

/** The platform up to `now`. */
export function exampleWorld(now: number, campaigns: number): ExampleWorld {
  const events = [...sampleCampaigns(now, campaigns)].map(
    (event): ChangeEvent => ({ ...event, key: keyOf(event) }) as ChangeEvent,
  )
  const today = Math.floor(now / dayMs)
  const days = Array.from({ length: historyDays + 1 }, (_, index) => today - historyDays + index)
  const history = new Map(days.map(day => [day, new Map<string, Shown>()]))
  for (const own of Map.groupBy(events, campaignOf).values()) {
    let last: Shown | undefined
    let seen = -1
    for (const day of days) {
      const upTo = own.findIndex(event => timeOf(event) >= (day + 1) * dayMs)
      const count = upTo < 0 ? own.length : upTo
      if (count !== seen) last = shownOf([...readModelOf(own.slice(0, count)).campaigns.values()][0])
      seen = count
      if (last) history.get(day)?.set(last.id, last)
    }
  }
  return { now, events, days, history, shown: [...(history.get(today) ?? new Map()).values()] }
}

function shownOf(reading: CampaignReading | undefined): Shown | undefined {
  if (reading === undefined) return undefined
  const { campaign, pledgedMinor, pledgedPlatformMinor, rewards } = reading
  const scale = 10 ** (currencyDigits(campaign.currency) ?? 0)
  return {
    id: campaign.campaign_id,
    title: campaign.title,
    category: campaign.category,
    currency: campaign.currency,
    status: campaign.status,
    goal: Number(campaign.goal_amount_minor) / scale,
    pledged: Number(pledgedMinor) / scale,
    platform: Number(pledgedPlatformMinor) / 100,
    percent: Number(percentText(pledgedMinor, BigInt(campaign.goal_amount_minor))),
    backers: reading.backerCount,
    pledges: reading.pledgeCount,
    followers: Number(campaign.follower_count),
    isPick: campaign.is_staff_pick,
    tags: campaign.tags,
    creator: campaign.creator.profile_url,
    launch: campaign.launch_date ?? Number.NaN,
    end: campaign.end_date ?? Number.NaN,
    tiers: campaign.rewards.map((tier, index) => {
      const left = rewards[index]?.remaining ?? null
      return {
        title: tier.title,
        price: Number(tier.amount_minor) / scale,
        available: tier.quantity_available === null ? null : Number(tier.quantity_available),
        claimed: rewards[index]?.claimed ?? 0,
        left: left === null ? null : Number(left),
      }
    }),
  }
}

function campaignOf({ key }: ChangeEvent): string {
  return key.split('/')[0] ?? ''
}

/** Unix ms. The demo's versions are its times in microseconds. */
function timeOf(event: ChangeEvent): number {
  return event.data === null ? 0 : Math.floor(Number(event.data.version) / 1000)
}
