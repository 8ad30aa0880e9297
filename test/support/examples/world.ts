/**
 * The demo platform as events, and what the examples of `contracts/tables/examples` ask about: the campaigns as they are, and as
 * they were shown at the end of each day. It is computed from the events by the plain model (model.ts), without any SQL.
 */
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import { type ChangeEvent, keyOf } from '../../../contracts/events/event.ts'
import { type CampaignReading, percentText, readModelOf } from '../events/model.ts'
import { sampleCampaigns } from '../events/sample-campaigns.ts'

export type Shown = ReturnType<typeof shownOf>

export type ExampleWorld = ReturnType<typeof exampleWorld>

export const dayMs = 86_400_000
const historyDays = 40
const dongsPerCent = 263

/**
 * The platform up to `now`. Each campaign has a tag twice, one is just below its goal, and one, which was funded, is in a weak currency and
 * alone in its category.
 */
export function exampleWorld(now: number, campaigns: number) {
  const recorded = [...sampleCampaigns(now, campaigns)].map(
    (event): ChangeEvent => ({ ...event, key: keyOf(event) }) as ChangeEvent,
  )
  const readings = [...readModelOf(recorded).campaigns.values()]
  const weak = readings.find(
    ({ campaign, pledgedMinor }) => campaign.status === 'FUNDED' && pledgedMinor > 0n,
  )
  const isWeak = (event: ChangeEvent) => campaignOf(event) === weak?.campaign.campaign_id
  const near = readings.find(
    ({ campaign: { status, end_date }, pledgedMinor }) =>
      status === 'LIVE' && Number(end_date) < now + 6 * dayMs && pledgedMinor > 20_000n,
  )
  const events = recorded.map((event): ChangeEvent => {
    if (event.type === 'pledge' && event.data !== null && isWeak(event)) {
      const amount_minor = Number(event.data.platform_amount_minor) * dongsPerCent
      return { ...event, data: { ...event.data, amount_minor } }
    }
    if (event.type !== 'campaign' || event.data === null) return event
    const { campaign_id, tags } = event.data
    const goal = campaign_id === near?.campaign.campaign_id && { goal_amount_minor: near.pledgedMinor + 1n }
    const alone = isWeak(event) && { currency: 'VND', category: 'Alone' }
    return { ...event, data: { ...event.data, tags: [...tags, ...tags.slice(0, 1)], ...goal, ...alone } }
  })
  const today = Math.floor(now / dayMs)
  /** UTC days as days since 1970, from the first one of the history to today. */
  const days = Array.from({ length: historyDays + 1 }, (_, index) => today - historyDays + index)
  /** By day: the public campaigns at its end, by id. */
  const history = new Map(days.map(day => [day, new Map<string, Shown>()]))
  for (const own of Map.groupBy(events, campaignOf).values()) {
    let last: Shown | undefined
    let seen = -1
    for (const day of days) {
      const upTo = own.findIndex(event => timeOf(event) >= (day + 1) * dayMs)
      const count = upTo < 0 ? own.length : upTo
      if (count !== seen) [last] = [...readModelOf(own.slice(0, count)).campaigns.values()].map(shownOf)
      seen = count
      if (last) history.get(day)?.set(last.id, last)
    }
  }
  /** The public campaigns now. */
  const shown = [...(history.get(today) ?? new Map<string, Shown>()).values()]
  interrupt(history, days, shown)
  return { now, events, days, history, shown }
}

/**
 * Hides a live campaign for three days in the history, and shows it again. Before it has refunds, in a category of its own, and
 * few pledges; then as many on each day; and today it takes off.
 */
function interrupt(
  history: ReadonlyMap<number, Map<string, Shown>>,
  days: readonly number[],
  shown: readonly Shown[],
): void {
  const [first = 0, today = 0] = [days[0], days.at(-1)]
  // Older than the history: no question about its whole life has an answer.
  const one = shown.find(({ status, launch }) => status === 'LIVE' && launch < (first - 1) * dayMs)
  if (one === undefined) throw new Error('no live campaign is older than the history')
  for (const day of days) {
    const ago = today - day
    if (ago >= 4 && ago <= 6) history.get(day)?.delete(one.id)
    else {
      const pledges = ago > 3 ? 1_000 - ago : ([1_600, 1_000, 800, 600][ago] ?? 0)
      const platform = 1_000 + 10 * Math.abs(ago - 7)
      history.get(day)?.set(one.id, { ...one, category: 'Refunded', pledges, platform })
    }
  }
}

/** A public campaign. Amounts in major units. */
function shownOf(reading: CampaignReading) {
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
    /** Unix ms. */
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
