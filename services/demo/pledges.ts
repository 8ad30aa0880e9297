/** One campaign's pledges: when they come, what they choose, and what becomes of them. */
import type { PledgeStatus } from '../../contracts/events/event.ts'
import { countsTowardsTotals } from '../../contracts/events/event.ts'
import { type DemoCurrency, priceMinor } from './money.ts'
import { between, chance, intBetween, pickWeighted, type Random } from './random.ts'
import type { OfferedReward } from './rewards.ts'
import type { Schedule } from './schedule.ts'

/** A state of a pledge, from `time` (ms) on. Amounts are in the campaign's currency. */
export interface PledgeStep {
  time: number
  status: PledgeStatus
  amountMinor: number
  rewardId: string | null
}

export interface PlannedPledge {
  /** The backer's number among all of the platform's. */
  backer: number
  /** At least one; times only grow. */
  steps: PledgeStep[]
}

interface PledgePlan {
  schedule: Schedule
  rewards: readonly OfferedReward[]
  currency: DemoCurrency
  /** Backers have the numbers 0 to this, without it. */
  backersMax: number
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** `count` pledges in the order in which they come, with everything that will happen to them. */
export function planPledges(random: Random, count: number, plan: PledgePlan): PlannedPledge[] {
  const { launchAt, closedAt } = plan.schedule
  // The last ones come early enough for their payment to be settled before the campaign closes.
  const lifetime = closedAt - launchAt - hour
  const times = Array.from({ length: count }, () => launchAt + 5 * second + momentIn(random) * lifetime)
  times.sort((a, b) => a - b)
  const left = new Map(
    plan.rewards.map(({ reward }) => [
      reward.reward_id,
      reward.quantity_available ?? Number.POSITIVE_INFINITY,
    ]),
  )
  const backers = new Set<number>()
  return times.map(time => {
    const backer = drawBacker(random, plan.backersMax, backers)
    backers.add(backer)
    const choice = chooseReward(random, plan, left)
    return { backer, steps: lifeOf(random, Math.floor(time), choice, plan) }
  })
}

/** What counts in the end, and the most that was ever promised; in the smallest unit of the campaign's currency. */
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

/** A pledge's first amount: the reward's price, and now and then something on top; any sum without a reward. */
export function firstAmount(random: Random, price: number | null, currency: DemoCurrency): number {
  if (price === null) return priceMinor(between(random, 1, 9) ** 2, currency)
  return chance(random, 0.14) ? price + priceMinor(between(random, 1, 12), currency) : price
}

// A third comes in the first eighth of the time and a fifth in the last; 0 is the launch, 1 the close.
function momentIn(random: Random): number {
  const share = random()
  if (share < 0.32) return random() ** 1.6 * 0.125
  return share < 0.52 ? 1 - random() ** 1.4 * 0.125 : random()
}

// Low numbers are drawn more often: they are the people who back everything. Few pledge twice to one campaign.
function drawBacker(random: Random, backersMax: number, taken: ReadonlySet<number>): number {
  let backer = 0
  for (let attempt = 0; attempt < 4; attempt++) {
    backer = Math.floor(random() ** 1.7 * backersMax)
    if (!taken.has(backer)) break
  }
  return backer
}

/** Chooses among the tiers that are left, and takes one of it. */
function chooseReward(
  random: Random,
  { rewards, currency }: PledgePlan,
  left: Map<string, number>,
): { rewardId: string | null; amountMinor: number } {
  const available = rewards.filter(({ reward }) => (left.get(reward.reward_id) ?? 0) > 0)
  if (available.length === 0 || chance(random, 0.07)) {
    return { rewardId: null, amountMinor: firstAmount(random, null, currency) }
  }
  const { reward } = pickWeighted(
    random,
    available.map(offer => [offer, offer.demand] as const),
  )
  left.set(reward.reward_id, (left.get(reward.reward_id) ?? 0) - 1)
  return {
    rewardId: reward.reward_id,
    amountMinor: firstAmount(random, reward.amount_minor, currency),
  }
}

function lifeOf(
  random: Random,
  time: number,
  choice: { rewardId: string | null; amountMinor: number },
  plan: PledgePlan,
): PledgeStep[] {
  const first: PledgeStep = { time, status: 'ACTIVE', ...choice }
  const payment = random()
  const settledAt = time + intBetween(random, 20 * second, 20 * minute)
  if (payment < 0.003) return [{ ...first, status: 'PENDING' }]
  if (payment < 0.015) {
    return [
      { ...first, status: 'PENDING' },
      { ...first, time: settledAt, status: 'FAILED' },
    ]
  }
  const steps: PledgeStep[] =
    payment < 0.06
      ? [
          { ...first, status: 'PENDING' },
          { ...first, time: settledAt },
        ]
      : [first]
  steps.push(...whileLive(random, steps.at(-1) ?? first, plan))
  const last = steps.at(-1) ?? first
  if (last.status === 'ACTIVE' && plan.schedule.outcome === 'FUNDED') {
    steps.push(...afterFunding(random, last, plan.schedule.closedAt))
  }
  return steps
}

/** A few are withdrawn, a few changed: more money, or another tier that has no limit. */
function whileLive(random: Random, from: PledgeStep, plan: PledgePlan): PledgeStep[] {
  const left = plan.schedule.closedAt - from.time
  const time = from.time + Math.floor(left * between(random, 0.02, 0.98))
  const change = random()
  if (left < 10 * minute || change > 0.075) return []
  if (change < 0.035) return [{ ...from, time, status: 'CANCELLED' }]
  const dearer = plan.rewards.find(
    ({ reward }) => reward.quantity_available === null && reward.amount_minor > from.amountMinor,
  )
  return dearer && chance(random, 0.5)
    ? [{ ...from, time, rewardId: dearer.reward.reward_id, amountMinor: dearer.reward.amount_minor }]
    : [{ ...from, time, amountMinor: from.amountMinor + priceMinor(between(random, 2, 20), plan.currency) }]
}

/** The money is collected within days; a few cards fail, and fewer ask for their money back later. */
function afterFunding(random: Random, from: PledgeStep, closedAt: number): PledgeStep[] {
  const settled = { ...from, time: closedAt + intBetween(random, hour, 3 * day) }
  if (chance(random, 0.02)) return [{ ...settled, status: 'FAILED' }]
  const collected: PledgeStep = { ...settled, status: 'COLLECTED' }
  if (!chance(random, 0.008)) return [collected]
  return [
    collected,
    { ...collected, time: settled.time + intBetween(random, 2 * day, 45 * day), status: 'REFUNDED' },
  ]
}

/** No pledge changes later than this after its campaign has closed, in ms. */
export const aftermathMax = 48 * day
