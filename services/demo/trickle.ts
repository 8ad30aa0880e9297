/**
 * The demo platform after its history: new events as time passes, in small batches.
 *
 * There are two kinds of events. Planned events (campaigns launch, end and are settled; their planned pledges come in) have
 * ids, times and versions that follow from the seed. After a restart they are repeated from the history's end, and change
 * nothing. Spontaneous events (additional pledges to campaigns that reach their goal anyway, changes of these pledges,
 * followers) have ids and versions from the clock in microseconds, so that no two runs of a process collide. The model keeps
 * only the campaigns that are not over yet, and no past events. There are no new drafts, so after some months all campaigns
 * have ended, and no new events are made.
 */
import type { StateEvent } from '../../contracts/events/event.ts'
import { type CampaignPlan, campaignAt, planCampaign } from './campaign.ts'
import { mergeByTime } from './merge.ts'
import { backersMaxOf, type DemoOptions, outlinesOf } from './outline.ts'
import { eventsOf } from './platform.ts'
import { aftermathMax, chooseOffer, firstStep, type PledgeStep, pledgeState, raised } from './pledges.ts'
import { chance, intBetween, opaqueId, pick, pickBy, poisson, type Random, randomOf } from './random.ts'
import { minute, statusAt } from './schedule.ts'

export const batchEventsMax = 1_000

interface SpontaneousPledge {
  plan: CampaignPlan
  ids: Parameters<typeof pledgeState>[0]
  step: PledgeStep
}

interface Model {
  options: DemoOptions
  /** Campaigns that were not over when the history ended. */
  campaigns: CampaignPlan[]
  /** The latest time and version that were used. */
  clock: number
  version: number
  /** Spontaneous pledges of this run that may still change, oldest first. */
  recentPledges: SpontaneousPledge[]
  followersTold: Map<CampaignPlan, number>
}

const recentPledgesMax = 200
// After a pause the process does not make up for the missed time.
const elapsedMsMax = 10_000

/**
 * Continues the platform with these options, whose history ended at `options.now`. `next` returns the events since the last
 * call, with growing versions for every entity. It returns at most `batchEventsMax` events, and the rest with the next call.
 * Its `now` is in ms; if the clock was set back, time stands still. The rate of spontaneous events is an average per
 * second.
 */
export function demoTrickle({
  eventsPerSecond = 1.2,
  ...options
}: DemoOptions & { eventsPerSecond?: number }) {
  const plans = outlinesOf(options)
    .filter(({ schedule }) => schedule.closedAt + aftermathMax > options.now)
    .map(outline => planCampaign(options, outline))
  const open = (plan: CampaignPlan) => eventsOf(options.seed, plan, options.now)
  const planned = mergeByTime(plans.map(plan => ({ startsAt: options.now, open: () => open(plan) })))
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
    next(now: number): StateEvent[] {
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
      const expected = (eventsPerSecond * elapsedMs) / 1000
      const count = Math.min(batchEventsMax - events.length, poisson(random, expected))
      for (let i = 0; i < count; i++) events.push(...spontaneous(random, model))
      return events
    },
  }
}

/** One event, or none if no campaign or pledge suits it. */
function spontaneous(random: Random, model: Model): StateEvent[] {
  const share = random()
  if (share < 0.82) return newPledge(random, model)
  return share < 0.88 ? changedPledge(random, model) : newFollowers(random, model)
}

/** A pledge to a campaign that will be funded, so that it cannot rescue a campaign that is planned to fail. */
function newPledge(random: Random, model: Model): StateEvent[] {
  const open = model.campaigns.filter(plan => isLive(plan, model) && plan.schedule.outcome === 'FUNDED')
  if (open.length === 0) return []
  const plan = pickBy(random, open, ({ pledges }) => Math.sqrt(pledges.length))
  // The limited tiers that an earlier run sold are not known, so the trickle does not use limited tiers.
  const unlimited = plan.offers.filter(({ reward }) => reward.quantity_available === null)
  const offer = chooseOffer(random, unlimited)
  const step = firstStep(random, model.clock, plan.currency, offer)
  const { seed } = model.options
  const version = nextVersion(model)
  const ids = {
    pledge_id: `plg_${version.toString(36)}`,
    campaign_id: plan.constant.campaign_id,
    backer_id: chance(random, 0.6)
      ? opaqueId('bkr', seed, intBetween(random, 0, backersMaxOf(model.options) - 1))
      : `bkr_${version.toString(36)}`,
  }
  return [told(model, { plan, ids, step }, version)]
}

/** Withdraws a spontaneous pledge, or raises it. */
function changedPledge(random: Random, model: Model): StateEvent[] {
  if (model.recentPledges.length === 0) return []
  const pledge = pick(random, model.recentPledges)
  model.recentPledges = model.recentPledges.filter(other => other !== pledge)
  const { plan } = pledge
  if (!isLive(plan, model)) return []
  const step = { ...pledge.step, time: model.clock }
  if (chance(random, 0.5)) step.status = 'CANCELLED'
  else step.amountMinor = raised(random, step.amountMinor, plan.currency)
  return [told(model, { ...pledge, step }, nextVersion(model))]
}

/** The pledge's event. The pledge is kept in memory as long as it may change. */
function told(model: Model, pledge: SpontaneousPledge, version: number): StateEvent {
  const { plan, ids, step } = pledge
  if (step.status === 'ACTIVE') model.recentPledges.push(pledge)
  if (model.recentPledges.length > recentPledgesMax) model.recentPledges.shift()
  return { type: 'pledge', data: pledgeState(ids, step, plan.currency, version) }
}

function newFollowers(random: Random, model: Model): StateEvent[] {
  const live = model.campaigns.filter(plan => isLive(plan, model))
  if (live.length === 0) return []
  const plan = pick(random, live)
  const data = campaignAt(plan, model.clock, model.version)
  const followers = Number(data.follower_count)
  if (model.followersTold.get(plan) === followers) return []
  model.followersTold.set(plan, followers)
  return [{ type: 'campaign', data: { ...data, version: nextVersion(model) } }]
}

// A campaign that is about to close gets no spontaneous events.
function isLive({ schedule }: CampaignPlan, { clock }: Model): boolean {
  return statusAt(schedule, clock) === 'LIVE' && schedule.closedAt > clock + minute
}

/** The clock in microseconds, but always more than every version before it. */
function nextVersion(model: Model): number {
  model.version = Math.max(model.version, model.clock * 1000) + 1
  return model.version
}
