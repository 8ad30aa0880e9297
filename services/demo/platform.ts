/**
 * The demo platform's history: believable change events of a whole crowdfunding platform, out of a seed.
 *
 * A pure function of its arguments. Events come in the order of their time, of all campaigns together; each carries
 * its time in microseconds as its version, so the events of one entity have growing versions.
 */
import type { StateEvent } from '../../contracts/events/event.ts'
import { type CampaignPlan, campaignAt, campaignMoments, planCampaign } from './campaign.ts'
import { opaqueId } from './ids.ts'
import { mergeByTime, type TimedSource } from './merge.ts'
import { toPlatformMinor } from './money.ts'
import { type DemoOptions, outlinesOf } from './outline.ts'
import type { PlannedPledge, PledgeStep } from './pledges.ts'
import type { Seed } from './random.ts'

export interface TimedEvent {
  /** Ms since the epoch. */
  time: number
  event: StateEvent
}

/** Everything that happened on the platform up to `now`. */
export function* demoEvents(options: DemoOptions): Iterable<StateEvent> {
  const sources = outlinesOf(options)
    .filter(({ schedule }) => schedule.createdAt <= options.now)
    .map(
      (outline): TimedSource<TimedEvent> => ({
        startsAt: outline.schedule.createdAt,
        open: () => eventsOf(options.seed, planCampaign(options, outline)),
      }),
    )
  for (const { time, event } of mergeByTime(sources)) {
    if (time > options.now) return
    yield event
  }
}

/** The events of one campaign and its pledges in order of time, only those after `after` (ms) where it is given. */
export function* eventsOf(
  seed: Seed,
  plan: CampaignPlan,
  after = Number.NEGATIVE_INFINITY,
): Generator<TimedEvent, void, undefined> {
  for (const moment of momentsOf(plan, after)) {
    yield { time: moment.time, event: stateEventOf(seed, plan, moment) }
  }
}

interface CampaignMoment {
  type: 'campaign'
  time: number
}

interface PledgeMoment {
  type: 'pledge'
  time: number
  pledge: PlannedPledge
  /** The pledge's number within its campaign. */
  number: number
  step: PledgeStep
}

function momentsOf(plan: CampaignPlan, after: number): (CampaignMoment | PledgeMoment)[] {
  const moments: (CampaignMoment | PledgeMoment)[] = []
  for (const time of campaignMoments(plan)) {
    if (time > after) moments.push({ type: 'campaign', time })
  }
  for (const [number, pledge] of plan.pledges.entries()) {
    for (const step of pledge.steps) {
      if (step.time > after) moments.push({ type: 'pledge', time: step.time, pledge, number, step })
    }
  }
  return moments.sort((a, b) => a.time - b.time)
}

function stateEventOf(seed: Seed, plan: CampaignPlan, moment: CampaignMoment | PledgeMoment): StateEvent {
  switch (moment.type) {
    case 'campaign':
      return { type: 'campaign', data: campaignAt(plan, moment.time) }
    case 'pledge': {
      const { pledge, number, step } = moment
      return {
        type: 'pledge',
        data: {
          pledge_id: `plg_${plan.campaignId.slice(4)}_${number}`,
          campaign_id: plan.campaignId,
          backer_id: opaqueId('bkr', seed, pledge.backer),
          version: step.time * 1000,
          changed_at: step.time,
          status: step.status,
          amount_minor: step.amountMinor,
          platform_amount_minor: toPlatformMinor(step.amountMinor, plan.currency),
          reward_id: step.rewardId,
        },
      }
    }
    default:
      return moment satisfies never
  }
}
