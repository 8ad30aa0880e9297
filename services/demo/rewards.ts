/** One campaign's reward tiers: the category's templates with prices, quantities and the campaign's own words. */
import type { RewardState } from '../../contracts/events/event.ts'
import type { Category, Delivery, Genre, Supply } from './catalog/types.ts'
import { type DemoCurrency, priceMinor } from './money.ts'
import { between, chance, intBetween, type Random } from './random.ts'
import { fill, type Slots } from './texts.ts'

export interface DemoReward extends RewardState {
  amount_minor: number
  quantity_available: number | null
}

/** A reward and how often it is chosen, relative to the campaign's others. */
export interface OfferedReward {
  reward: DemoReward
  demand: number
  supply: Supply
}

/** Three to eight tiers, cheapest first. Quantities fit a campaign that `pledgesExpected` pledges come to. */
export function planRewards(
  random: Random,
  options: {
    category: Category
    genre: Genre
    slots: Slots
    currency: DemoCurrency
    pledgesExpected: number
  },
): OfferedReward[] {
  const { category, genre, slots, currency, pledgesExpected } = options
  const level = between(random, 0.75, 1.35) * (genre.priceFactor ?? 1)
  const offered = category.tiers.filter(tier => tier.demand >= 20 || chance(random, 0.72))
  return offered.map((tier, index) => ({
    reward: {
      reward_id: `tier-${index + 1}`,
      title: fill(tier.title, slots),
      description: fill(tier.description, slots),
      // Thanks cost the same everywhere; what has to be made costs what it is.
      amount_minor: priceMinor(tier.price < 6 ? tier.price : tier.price * level, currency),
      quantity_available: quantityOf(random, tier.supply, pledgesExpected),
    },
    demand: tier.demand * between(random, 0.6, 1.4),
    supply: tier.supply,
  }))
}

/** The tier that creators add when the early one is gone, at its price. None where there is nothing to make twice. */
export function secondBatch(rewards: readonly OfferedReward[], delivery: Delivery): DemoReward | undefined {
  const early = rewards.find(({ supply }) => supply === 'early')?.reward
  if (!early || delivery === 'event') return undefined
  return {
    reward_id: `tier-${rewards.length + 1}`,
    title: `${early.title}, second batch`,
    description:
      'For everyone who came too late: the same again, delivered about two months after the first.',
    amount_minor: early.amount_minor,
    quantity_available: null,
  }
}

function quantityOf(random: Random, supply: Supply, pledgesExpected: number): number | null {
  switch (supply) {
    case 'open':
      return null
    case 'early': {
      const wanted = pledgesExpected * between(random, 0.08, 0.4)
      return wanted > 100 ? Math.ceil(wanted / 50) * 50 : Math.max(10, Math.ceil(wanted / 5) * 5)
    }
    case 'scarce':
      return intBetween(random, 1, 8)
    default:
      return supply satisfies never
  }
}
