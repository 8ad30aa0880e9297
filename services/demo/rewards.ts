/** One campaign's reward tiers: the category's templates with prices, quantities and the campaign's own words. */
import type { RewardState } from '../../contracts/events/event.ts'
import type { Supply } from './catalog.ts'
import { priceMinor } from './money.ts'
import type { Outline } from './outline.ts'
import { between, chance, intBetween, type Random } from './random.ts'
import { fill } from './texts.ts'

export interface DemoReward extends RewardState {
  amount_minor: number
  quantity_available: number | null
}

/** A reward and its weight, relative to the campaign's other rewards. */
export interface OfferedReward {
  reward: DemoReward
  demand: number
  supply: Supply
}

/** Three to eight tiers, cheapest first. Quantities suit a campaign with about `pledgesExpected` pledges. */
export function planRewards(random: Random, outline: Outline, pledgesExpected: number): OfferedReward[] {
  const { category, currency, genre, slots } = outline
  const level = between(random, 0.75, 1.35) * genre.priceFactor
  const offered = category.tiers.filter(tier => tier.demand >= 20 || chance(random, 0.72))
  return offered.map((tier, index) => ({
    reward: {
      reward_id: `tier-${index + 1}`,
      title: fill(tier.title, slots),
      description: fill(tier.description, slots),
      // A thank-you costs the same in all categories; the price of a product depends on the category.
      amount_minor: priceMinor(tier.price < 6 ? tier.price : tier.price * level, currency),
      quantity_available: quantityOf(random, tier.supply, pledgesExpected),
    },
    demand: tier.demand * between(random, 0.6, 1.4),
    supply: tier.supply,
  }))
}

/** The tier that creators add at the price of the early tier when that is sold out. None if there is no product. */
export function secondBatch(
  rewards: readonly OfferedReward[],
  { category }: Outline,
): DemoReward | undefined {
  const early = rewards.find(({ supply }) => supply === 'early')?.reward
  if (!early || category.delivery === 'event') return undefined
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
  if (supply === 'open') return null
  if (supply === 'scarce') return intBetween(random, 1, 8)
  const wanted = pledgesExpected * between(random, 0.08, 0.4)
  return wanted > 100 ? Math.ceil(wanted / 50) * 50 : Math.max(10, Math.ceil(wanted / 5) * 5)
}
