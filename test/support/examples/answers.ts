/** The answers to the examples about the campaigns as they are, computed as plainly as possible from a world. */
import { byBytes } from '../events/model.ts'
import { mean, median, round, sum } from './arithmetic.ts'
import type { ExampleWorld, Shown } from './world.ts'

/** A cell that the query rounds to this many digits. The value is not rounded. */
export interface Rounded {
  value: number
  digits: number
}

export type Cell = string | number | boolean | null | Rounded
export type Answer = readonly (readonly Cell[])[]

const platformCurrency = 'USD'

export function rounded(value: number, digits: number): Rounded | null {
  return Number.isFinite(value) ? { value, digits } : null
}

const moneyOf = (campaigns: readonly Shown[]): number => sum(campaigns.map(({ platform }) => platform))
const endedOf = (campaigns: readonly Shown[]): Shown[] => campaigns.filter(({ status }) => status !== 'LIVE')
const fundedOf = (campaigns: readonly Shown[]): number =>
  campaigns.filter(({ status }) => status === 'FUNDED').length
const successOf = (campaigns: readonly Shown[]): number =>
  (100 * fundedOf(campaigns)) / endedOf(campaigns).length
const groups = <T, K>(items: readonly T[], keyOf: (item: T) => K): [K, T[]][] => [
  ...Map.groupBy(items, keyOf),
]

const outcomeOf = (campaigns: readonly Shown[]): Cell[] => [
  ...[campaigns.length, fundedOf(campaigns), rounded(successOf(campaigns), 1)],
]

/** The name at the place of the first bound that is above the value; the last name if there is none. */
function classOf(value: number, bounds: readonly number[], names: readonly string[]): string {
  return names.at(bounds.findIndex(bound => value < bound)) ?? ''
}

/** [name, ended, funded, success] of each class, the lowest first. */
function successBy(
  campaigns: readonly Shown[],
  measure: (one: Shown) => number,
  nameOf: (value: number) => string,
): Answer {
  return groups(
    campaigns.toSorted((a, b) => measure(a) - measure(b)),
    one => nameOf(measure(one)),
  ).map(([name, members]) => [name, ...outcomeOf(members)])
}

/** At the rate of its own pledges, or at the mean one of its currency; NaN if nobody has pledged in it. */
function goalPlatformOf({ goal, currency, pledged, platform }: Shown, shown: readonly Shown[]): number {
  if (pledged > 0) return (goal * platform) / pledged
  const alike = shown.filter(one => one.currency === currency)
  return (goal * sum(alike.map(one => one.platform))) / sum(alike.map(one => one.pledged))
}

export const answers: Readonly<Record<string, (world: ExampleWorld) => Answer>> = {
  '01-funding-by-category-and-month': ({ shown }) =>
    groups(shown, one => `${new Date(one.launch).toISOString().slice(0, 7)}-01/${one.category}`)
      .map(([key, members]) => ({ key, members, raised: moneyOf(members) }))
      .toSorted(
        (a, b) =>
          byBytes(a.key.slice(0, 10), b.key.slice(0, 10)) || b.raised - a.raised || byBytes(a.key, b.key),
      )
      .map(({ key, members, raised }) => [
        key.slice(11),
        key.slice(0, 10),
        members.length,
        rounded(raised, 2),
      ]),

  '02-success-rate-by-goal-size': ({ shown }) =>
    successBy(
      endedOf(shown).filter(one => goalPlatformOf(one, shown) > 0),
      one => goalPlatformOf(one, shown),
      goal =>
        classOf(
          goal,
          [1_000, 5_000, 10_000, 50_000],
          ['below 1,000', '1,000 to 4,999', '5,000 to 9,999', '10,000 to 49,999', '50,000 and more'],
        ),
    ),

  '03-success-rate-by-category': ({ shown }) =>
    groups(endedOf(shown), ({ category }) => category)
      .toSorted(([a, x], [b, y]) => round(successOf(y), 1) - round(successOf(x), 1) || byBytes(a, b))
      .map(([category, members]) => [
        category,
        ...outcomeOf(members),
        ...['FUNDED', 'FAILED'].map(status =>
          rounded(median(members.filter(one => one.status === status).map(({ percent }) => percent)), 1),
        ),
      ]),

  '04-success-rate-by-duration': ({ shown }) =>
    successBy(
      shown.filter(({ status }) => status === 'FUNDED' || status === 'FAILED'),
      // Hours that began, as dateDiff counts them.
      ({ launch, end }) => Math.round((Math.floor(end / 3.6e6) - Math.floor(launch / 3.6e6)) / 24),
      days => classOf(days, [15, 22, 30, 31], ['up to 14 days', '15 to 21', '22 to 29', '30', 'longer']),
    ),

  '05-launches-by-weekday': ({ shown }) =>
    groups(shown, ({ launch }) => (new Date(launch).getUTCDay() + 6) % 7)
      .toSorted(([a], [b]) => a - b)
      .map(([day, members]) => [
        ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'][day] ?? '',
        ...outcomeOf(members),
      ]),

  '06-staff-picks': ({ shown }) =>
    [true, false].map(isPick => {
      const members = shown.filter(one => one.isPick === isPick)
      return [
        isPick,
        members.length,
        rounded(successOf(members), 1),
        rounded(moneyOf(members) / members.length, 2),
        rounded(median(members.map(({ platform }) => platform)), 2),
        rounded(mean(members.map(({ backers }) => backers)), 1),
      ]
    }),

  '07-tiers-that-sell-out': ({ shown }) => {
    const limited = shown
      .filter(({ currency }) => currency === platformCurrency)
      .flatMap(({ tiers }) => tiers.filter(({ available }) => available !== null))
      .toSorted((a, b) => a.price - b.price)
    const names = ['below 10', '10 to 24', '25 to 49', '50 to 99', '100 and more']
    const nameOf = (price: number) => classOf(price, [10, 25, 50, 100], names)
    return groups(limited, ({ price }) => nameOf(price)).map(([name, tiers]) => {
      const soldOut = tiers.filter(({ left }) => left === 0).length
      const percent = rounded((100 * soldOut) / tiers.length, 1)
      return [name, tiers.length, soldOut, percent, sum(tiers.map(({ claimed }) => claimed))]
    })
  },

  '08-prices-that-backers-choose': ({ shown }) =>
    groups(
      shown.flatMap(({ currency, tiers }) => tiers.map(tier => ({ currency, ...tier }))),
      ({ currency }) => currency,
    )
      .map(([currency, tiers]) => {
        const prices = tiers
          .flatMap(({ price, claimed }) => Array<number>(claimed).fill(price))
          .toSorted((a, b) => a - b)
        const middle = prices[Math.ceil(prices.length / 2) - 1] ?? Number.NaN
        return { currency, prices, middle }
      })
      .filter(({ prices }) => prices.length > 0)
      .toSorted((a, b) => b.prices.length - a.prices.length || byBytes(a.currency, b.currency))
      .map(({ currency, prices, middle }) => [currency, prices.length, middle, rounded(mean(prices), 2)]),

  '09-tiers-nearly-gone': ({ shown }) =>
    shown
      .filter(({ status }) => status === 'LIVE')
      .flatMap(campaign => campaign.tiers.map(tier => ({ campaign, tier, left: tier.left ?? 0 })))
      .filter(({ left }) => left >= 1 && left <= 5)
      .toSorted(
        (a, b) =>
          a.left - b.left ||
          byBytes(a.campaign.title, b.campaign.title) ||
          byBytes(a.tier.title, b.tier.title),
      )
      .slice(0, 20)
      .map(({ campaign, tier, left }) => [
        campaign.title,
        tier.title,
        tier.price,
        campaign.currency,
        left,
        tier.available,
      ]),

  '10-close-to-the-goal': ({ shown, now }) =>
    shown
      .filter(({ status, percent }) => status === 'LIVE' && percent >= 50)
      .filter(({ pledged, goal }) => pledged < goal)
      .filter(({ end }) => end > now && end <= now + 7 * 86_400_000)
      .toSorted((a, b) => b.percent - a.percent || byBytes(a.title, b.title))
      .slice(0, 20)
      .map(({ title, percent, goal, pledged, currency, backers, end }) => [
        title,
        percent,
        rounded(goal - pledged, 2),
        currency,
        backers,
        new Date(end).toISOString().replace('T', ' ').replace('Z', ''),
      ]),

  '11-average-pledge-by-category': ({ shown }) =>
    groups(shown, ({ category }) => category)
      .map(([category, members]) => ({ category, members, pledges: sum(members.map(one => one.pledges)) }))
      .toSorted(
        (a, b) =>
          round(moneyOf(b.members) / b.pledges, 2) - round(moneyOf(a.members) / a.pledges, 2) ||
          byBytes(a.category, b.category),
      )
      .map(({ category, members, pledges }) => [
        category,
        pledges,
        rounded(moneyOf(members) / pledges, 2),
        rounded(moneyOf(members) / sum(members.map(({ backers }) => backers)), 2),
      ]),

  '12-share-of-the-largest': ({ shown }) => {
    const ranked = shown.toSorted((a, b) => b.platform - a.platform)
    return [1, 5, 10, 25, 50].map(percent => {
      const largest = ranked.slice(0, Math.ceil((ranked.length * percent) / 100))
      const share = (100 * moneyOf(largest)) / moneyOf(ranked)
      return [percent, largest.length, rounded(moneyOf(largest), 2), rounded(share, 1)]
    })
  },

  '13-creators-who-come-back': ({ shown }) => {
    const numbered = groups(
      shown.toSorted((a, b) => a.launch - b.launch || byBytes(a.id, b.id)),
      ({ creator }) => creator,
    ).flatMap(([, own]) => own.map((one, index) => ({ one, number: Math.min(index, 2) })))
    return groups(numbered, ({ number }) => number)
      .toSorted(([a], [b]) => a - b)
      .map(([number, entries]) => {
        const members = entries.map(({ one }) => one)
        return [
          ['first', 'second', 'third or later'][number] ?? '',
          ...outcomeOf(members),
          rounded(moneyOf(members) / members.length, 2),
        ]
      })
  },

  '14-currencies': ({ shown }) =>
    groups(shown, ({ currency }) => currency)
      .toSorted(([, a], [, b]) => moneyOf(b) - moneyOf(a))
      .map(([currency, members]) => {
        const pledged = sum(members.map(one => one.pledged))
        const raised = moneyOf(members)
        return [
          currency,
          members.length,
          rounded(pledged, 2),
          rounded(raised, 2),
          rounded(raised / pledged, 8),
        ]
      }),

  '15-followers-and-backers': ({ shown }) =>
    groups(endedOf(shown), ({ category }) => category)
      .map(([category, members]) => ({
        category,
        members,
        followers: sum(members.map(one => one.followers)),
        backers: sum(members.map(one => one.backers)),
      }))
      .toSorted(
        (a, b) =>
          round((100 * b.backers) / b.followers, 1) - round((100 * a.backers) / a.followers, 1) ||
          byBytes(a.category, b.category),
      )
      .map(({ category, members, followers, backers }) => [
        category,
        members.length,
        followers,
        backers,
        rounded((100 * backers) / followers, 1),
      ]),

  '16-tags': ({ shown }) =>
    groups(
      shown.flatMap(one => [...new Set(one.tags)].map(tag => ({ tag, one }))),
      ({ tag }) => tag,
    )
      .map(([tag, entries]) => ({ tag, members: entries.map(({ one }) => one) }))
      .filter(({ members }) => members.length >= 5)
      .toSorted((a, b) => moneyOf(b.members) - moneyOf(a.members) || byBytes(a.tag, b.tag))
      .slice(0, 20)
      .map(({ tag, members }) => [
        tag,
        members.length,
        rounded(moneyOf(members), 2),
        rounded(successOf(members), 1),
      ]),
}
