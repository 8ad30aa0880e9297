/** One campaign's pledges: when they come, which tier they choose, and how they end. */
import { countsTowardsTotals, type PledgeState, type PledgeStatus } from '../../contracts/events/event.ts'
import { type DemoCurrency, priceMinor, toPlatformMinor } from './money.ts'
import type { Outline } from './outline.ts'
import { between, chance, intBetween, pickBy, type Random } from './random.ts'
import type { OfferedReward } from './rewards.ts'
import { day, hour, minute } from './schedule.ts'

/** A state of a pledge, from `time` (ms) on. Amounts are in the campaign's currency. */
export interface PledgeStep {
  time: number
  status: PledgeStatus
  amountMinor: number
  rewardId: string | null
}

export interface PlannedPledge {
  /** The backer's number among all backers of the platform. */
  backer: number
  /** At least one; times ascend. */
  steps: PledgeStep[]
}

/** Backers are numbered from 0, below `backersMax`. */
type PledgePlan = Pick<Outline, 'schedule' | 'currency'> & { offers: OfferedReward[]; backersMax: number }

const second = 1000

/** `count` pledges in the order in which they come, with all of their later states. */
export function planPledges(random: Random, count: number, plan: PledgePlan): PlannedPledge[] {
  const { launchAt, closedAt } = plan.schedule
  // The last ones come early enough for their payment to be settled before the campaign closes.
  const lifetime = closedAt - launchAt - hour
  const times = Array.from({ length: count }, () => launchAt + 5 * second + momentIn(random) * lifetime)
  const offers = plan.offers.map(offer => ({ ...offer, left: offer.reward.quantity_available ?? Infinity }))
  const backers = new Set<number>()
  return times
    .sort((a, b) => a - b)
    .map(time => {
      const backer = drawBacker(random, plan.backersMax, backers)
      backers.add(backer)
      const remaining = offers.filter(({ left }) => left > 0)
      const offer = chooseOffer(random, remaining)
      if (offer) offer.left--
      const first = firstStep(random, Math.floor(time), plan.currency, offer)
      return { backer, steps: lifeOf(random, first, plan) }
    })
}

/** The final sum and the highest sum that was ever pledged; in the smallest unit of the campaign's currency. */
export function totalsOf(pledges: readonly PlannedPledge[]): { lasting: number; promised: number } {
  let lasting = 0
  let promised = 0
  for (const { steps } of pledges) {
    const last = steps.at(-1)
    if (last && countsTowardsTotals(last.status)) lasting += last.amountMinor
    promised += Math.max(...steps.map(step => step.amountMinor))
  }
  return { lasting, promised }
}

/** The state that an event carries. Versions are in microseconds. Default: the step's own time. */
export function pledgeState(
  ids: Pick<PledgeState, 'pledge_id' | 'campaign_id' | 'backer_id'>,
  { time, status, amountMinor, rewardId }: PledgeStep,
  currency: DemoCurrency,
  version = time * 1000,
): PledgeState {
  return {
    ...ids,
    version,
    changed_at: time,
    status,
    amount_minor: amountMinor,
    platform_amount_minor: toPlatformMinor(amountMinor, currency),
    reward_id: rewardId,
  }
}

/** One of the tiers that are still available, or none: some backers want no reward. */
export function chooseOffer<T extends OfferedReward>(random: Random, offers: readonly T[]): T | undefined {
  if (offers.length === 0 || chance(random, 0.07)) return undefined
  return pickBy(random, offers, ({ demand }) => demand)
}

/** A new pledge: the tier's price, sometimes with an extra amount; any amount without a tier. */
export function firstStep(random: Random, time: number, currency: DemoCurrency, offer?: OfferedReward) {
  const rewardId = offer?.reward.reward_id ?? null
  let amountMinor = offer?.reward.amount_minor ?? priceMinor(between(random, 1, 9) ** 2, currency)
  if (offer && chance(random, 0.14)) amountMinor += priceMinor(between(random, 1, 12), currency)
  return { time, status: 'ACTIVE', amountMinor, rewardId } satisfies PledgeStep
}

/** The amount after a backer has raised a pledge. */
export function raised(random: Random, amountMinor: number, currency: DemoCurrency): number {
  return amountMinor + priceMinor(between(random, 2, 20), currency)
}

// A third of the pledges comes in the first eighth of the time and a fifth in the last; 0 is the launch, 1 the close.
function momentIn(random: Random): number {
  const share = random()
  if (share < 0.32) return random() ** 1.6 * 0.125
  return share < 0.52 ? 1 - random() ** 1.4 * 0.125 : random()
}

// Low numbers are drawn more often: some backers support many campaigns. Few pledge twice to one campaign.
function drawBacker(random: Random, backersMax: number, taken: ReadonlySet<number>): number {
  let backer = 0
  for (let attempt = 0; attempt < 4; attempt++) {
    backer = Math.floor(random() ** 1.7 * backersMax)
    if (!taken.has(backer)) break
  }
  return backer
}

function lifeOf(random: Random, first: PledgeStep, plan: PledgePlan): PledgeStep[] {
  const payment = random()
  const settledAt = first.time + intBetween(random, 20 * second, 20 * minute)
  const pending: PledgeStep = { ...first, status: 'PENDING' }
  if (payment < 0.003) return [pending]
  if (payment < 0.015) return [pending, { ...first, time: settledAt, status: 'FAILED' }]
  const isSlow = payment < 0.06
  const active = isSlow ? { ...first, time: settledAt } : first
  const change = whileLive(random, active, plan)
  const last = change ?? active
  return [
    ...(isSlow ? [pending] : []),
    active,
    ...(change ? [change] : []),
    ...(last.status === 'ACTIVE' && plan.schedule.outcome === 'FUNDED'
      ? afterFunding(random, last, plan.schedule.closedAt)
      : []),
  ]
}

/** A few are withdrawn, a few changed: a higher amount, or another tier without a limit. */
function whileLive(random: Random, from: PledgeStep, plan: PledgePlan): PledgeStep | undefined {
  const left = plan.schedule.closedAt - from.time
  const time = from.time + Math.floor(left * between(random, 0.02, 0.98))
  const change = random()
  if (left < 10 * minute || change > 0.075) return undefined
  if (change < 0.035) return { ...from, time, status: 'CANCELLED' }
  const dearer = plan.offers.find(
    ({ reward }) => reward.quantity_available === null && reward.amount_minor > from.amountMinor,
  )?.reward
  return dearer && chance(random, 0.5)
    ? { ...from, time, rewardId: dearer.reward_id, amountMinor: dearer.amount_minor }
    : { ...from, time, amountMinor: raised(random, from.amountMinor, plan.currency) }
}

/** Payments are collected within days. A few cards fail, and a smaller number of backers gets a refund later. */
function afterFunding(random: Random, from: PledgeStep, closedAt: number): PledgeStep[] {
  const settled = { ...from, time: closedAt + intBetween(random, hour, 3 * day) }
  if (chance(random, 0.02)) return [{ ...settled, status: 'FAILED' }]
  const collected: PledgeStep = { ...settled, status: 'COLLECTED' }
  if (!chance(random, 0.008)) return [collected]
  const refundedAt = settled.time + intBetween(random, 2 * day, 45 * day)
  return [collected, { ...collected, time: refundedAt, status: 'REFUNDED' }]
}

/** No pledge changes later than this after its campaign has closed, in ms. */
export const aftermathMax = 48 * day
