/**
 * The demo platform's history: realistic change events of a whole crowdfunding platform, from a seed.
 *
 * A pure function of its arguments. The events of all campaigns come in the order of their time. Each has its time in
 * microseconds as its version, so the versions of one entity grow.
 */
import type { StateEvent } from '../../contracts/events/event.ts'
import { type CampaignPlan, campaignAt, campaignMoments, planCampaign } from './campaign.ts'
import { mergeByTime } from './merge.ts'
import { type DemoOptions, outlinesOf } from './outline.ts'
import { pledgeState } from './pledges.ts'
import { opaqueId, type Seed } from './random.ts'

/** All events of the platform up to `now`. */
export function* demoEvents(options: DemoOptions): Iterable<StateEvent> {
  const sources = outlinesOf(options)
    .filter(({ schedule }) => schedule.createdAt <= options.now)
    .map(outline => ({
      startsAt: outline.schedule.createdAt,
      open: () => eventsOf(options.seed, planCampaign(options, outline)),
    }))
  for (const { time, event } of mergeByTime(sources)) {
    if (time > options.now) return
    yield event
  }
}

/** The events of one campaign and its pledges in order of time, only those after `after` (ms) if it is given. */
export function* eventsOf(seed: Seed, plan: CampaignPlan, after = Number.NEGATIVE_INFINITY) {
  const { campaign_id, currency } = plan.constant
  const moments = campaignMoments(plan).map(time => ({
    time,
    eventOf: (): StateEvent => ({ type: 'campaign', data: campaignAt(plan, time) }),
  }))
  for (const [number, { backer, steps }] of plan.pledges.entries()) {
    const pledge_id = `plg_${campaign_id.slice(4)}_${number}`
    const ids = { pledge_id, campaign_id, backer_id: opaqueId('bkr', seed, backer) }
    for (const step of steps) {
      const eventOf = (): StateEvent => ({ type: 'pledge', data: pledgeState(ids, step, currency) })
      moments.push({ time: step.time, eventOf })
    }
  }
  const upcoming = moments.filter(({ time }) => time > after).sort((a, b) => a.time - b.time)
  for (const { time, eventOf } of upcoming) yield { time, event: eventOf() }
}
