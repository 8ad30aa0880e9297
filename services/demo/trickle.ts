/**
 * The demo platform after its history: what happens from `now` to `now`, a small batch at a time.
 *
 * Two kinds of things happen. What was planned (campaigns launch, end and are settled; their own pledges come in) has
 * ids, times and versions that follow from the seed: after a restart it is told again from the history's end, and
 * changes nothing. What is spontaneous (more pledges on campaigns that reach their goal anyway, second thoughts about
 * them, followers) has ids and versions from the clock in microseconds, so that no two runs of a process collide.
 * The model holds the campaigns that are not over yet, and nothing of what it has told. Nobody drafts new ones, so after
 * some months everything is over and nothing happens any more.
 */
import type { PledgeState, StateEvent } from '../../contracts/events/event.ts'
import { type CampaignPlan, campaignAt, planCampaign } from './campaign.ts'
import { opaqueId } from './ids.ts'
import { mergeByTime } from './merge.ts'
import { priceMinor, toPlatformMinor } from './money.ts'
import { backersMaxOf, type DemoOptions, outlinesOf } from './outline.ts'
import { eventsOf } from './platform.ts'
import { aftermathMax, firstAmount } from './pledges.ts'
import { between, chance, intBetween, pick, pickWeighted, poisson, type Random, randomOf } from './random.ts'
import { statusAt } from './schedule.ts'

export interface Trickle {
  /**
   * What has happened since the last call, in an order in which every entity's versions grow; at most
   * `batchEventsMax` events, the rest follows with the next call. `now` in ms; a clock that was set back stands still.
   */
  next(now: number): StateEvent[]
}

export interface TrickleOptions extends DemoOptions {
  /** Spontaneous events a second, on average; 1.2 when left out. */
  eventsPerSecond?: number
}

export const batchEventsMax = 1_000

interface Model {
  options: DemoOptions
  /** Campaigns that were not over when the history ended. */
  campaigns: CampaignPlan[]
  /** The latest time and version that were given out. */
  clock: number
  version: number
  /** Spontaneous pledges of this run that somebody may think better of, oldest first. */
  recentPledges: PledgeState[]
  followersTold: Map<string, number>
}

const recentPledgesMax = 200
// A process that slept does not make up for it.
const elapsedMsMax = 10_000
// Nothing spontaneous happens to a campaign that is about to close.
const closingMs = 60_000

/** Goes on with the platform of these options, whose history ended at `options.now`. */
export function demoTrickle({ eventsPerSecond = 1.2, ...options }: TrickleOptions): Trickle {
  const plans = outlinesOf(options)
    .filter(({ schedule }) => schedule.closedAt + aftermathMax > options.now)
    .map(outline => planCampaign(options, outline))
  const planned = mergeByTime(
    plans.map(plan => ({
      startsAt: options.now,
      open: () => eventsOf(options.seed, plan, options.now),
    })),
  )
  let upcoming = planned.next()
  let lastCall: number | undefined
  const model: Model = {
    options,
    campaigns: plans.filter(({ schedule }) => schedule.closedAt > options.now),
    clock: options.now,
    version: options.now * 1000,
    recentPledges: [],
    followersTold: new Map(),
  }
  return {
    next(now) {
      model.clock = Math.max(model.clock, Math.floor(now))
      const events: StateEvent[] = []
      while (!upcoming.done && upcoming.value.time <= model.clock) {
        if (events.length === batchEventsMax) return events
        events.push(upcoming.value.event)
        upcoming = planned.next()
      }
      const elapsedMs = Math.min(elapsedMsMax, lastCall === undefined ? 1000 : model.clock - lastCall)
      lastCall = model.clock
      const random = randomOf(options.seed, 'trickle', model.clock, model.version)
      const room = batchEventsMax - events.length
      const count = Math.min(room, poisson(random, (eventsPerSecond * elapsedMs) / 1000))
      for (let i = 0; i < count; i++) {
        const event = spontaneous(random, model)
        if (event) events.push(event)
      }
      return events
    },
  }
}

function spontaneous(random: Random, model: Model): StateEvent | undefined {
  const kind = pickWeighted(random, [
    ['pledge', 82],
    ['second thoughts', 6],
    ['followers', 12],
  ] as const)
  switch (kind) {
    case 'pledge':
      return newPledge(random, model)
    case 'second thoughts':
      return changedPledge(random, model)
    case 'followers':
      return newFollowers(random, model)
    default:
      return kind satisfies never
  }
}

/** A pledge on a campaign that will be funded, so that it cannot make one succeed that is going to fail. */
function newPledge(random: Random, model: Model): StateEvent | undefined {
  const open = model.campaigns.filter(plan => isOpen(plan, model.clock))
  if (open.length === 0) return undefined
  const plan = pickWeighted(
    random,
    open.map(candidate => [candidate, Math.sqrt(candidate.pledges.length)] as const),
  )
  // Who took the limited tiers in an earlier run is not known, so these are left alone.
  const unlimited = plan.offers.filter(({ reward }) => reward.quantity_available === null)
  const reward =
    unlimited.length === 0 || chance(random, 0.07)
      ? null
      : pickWeighted(
          random,
          unlimited.map(offer => [offer.reward, offer.demand] as const),
        )
  const amountMinor = firstAmount(random, reward?.amount_minor ?? null, plan.currency)
  const version = nextVersion(model)
  const pledge: PledgeState = {
    pledge_id: `plg_${version.toString(36)}`,
    campaign_id: plan.campaignId,
    backer_id: chance(random, 0.6)
      ? opaqueId('bkr', model.options.seed, intBetween(random, 0, backersMaxOf(model.options) - 1))
      : `bkr_${version.toString(36)}`,
    version,
    changed_at: model.clock,
    status: 'ACTIVE',
    amount_minor: amountMinor,
    platform_amount_minor: toPlatformMinor(amountMinor, plan.currency),
    reward_id: reward?.reward_id ?? null,
  }
  model.recentPledges.push(pledge)
  if (model.recentPledges.length > recentPledgesMax) model.recentPledges.shift()
  return { type: 'pledge', data: pledge }
}

/** Somebody takes a spontaneous pledge back, or adds to it. */
function changedPledge(random: Random, model: Model): StateEvent | undefined {
  if (model.recentPledges.length === 0) return undefined
  const pledge = pick(random, model.recentPledges)
  const plan = model.campaigns.find(({ campaignId }) => campaignId === pledge.campaign_id)
  model.recentPledges = model.recentPledges.filter(other => other !== pledge)
  if (!plan || !isOpen(plan, model.clock)) return undefined
  const changed = { ...pledge, version: nextVersion(model), changed_at: model.clock }
  if (chance(random, 0.5)) return { type: 'pledge', data: { ...changed, status: 'CANCELLED' } }
  const amountMinor = Number(pledge.amount_minor) + priceMinor(between(random, 2, 20), plan.currency)
  const data: PledgeState = {
    ...changed,
    amount_minor: amountMinor,
    platform_amount_minor: toPlatformMinor(amountMinor, plan.currency),
  }
  model.recentPledges.push(data)
  return { type: 'pledge', data }
}

function newFollowers(random: Random, model: Model): StateEvent | undefined {
  const live = model.campaigns.filter(
    ({ schedule }) =>
      statusAt(schedule, model.clock) === 'LIVE' && schedule.closedAt > model.clock + closingMs,
  )
  if (live.length === 0) return undefined
  const plan = pick(random, live)
  const state = campaignAt(plan, model.clock, model.version + 1)
  const followers = Number(state.follower_count)
  if (model.followersTold.get(plan.campaignId) === followers) return undefined
  model.followersTold.set(plan.campaignId, followers)
  return { type: 'campaign', data: { ...state, version: nextVersion(model) } }
}

function isOpen({ schedule }: CampaignPlan, time: number): boolean {
  return (
    schedule.outcome === 'FUNDED' &&
    statusAt(schedule, time) === 'LIVE' &&
    schedule.closedAt > time + closingMs
  )
}

/** Microseconds of the clock, and more than every version before it. */
function nextVersion(model: Model): number {
  model.version = Math.max(model.version, model.clock * 1000) + 1
  return model.version
}
