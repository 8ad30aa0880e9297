/**
 * The demo platform after its history: the recorded events as their time comes, and spontaneous pledges between them.
 *
 * Recorded events follow from the end of the history alone. After a restart they are repeated from there, and change nothing.
 * Spontaneous pledges, and changes of them, have ids and versions from the clock in microseconds, so no two runs collide. After
 * three months all campaigns have ended, and nothing happens any more.
 */
import type { CampaignState, PledgeState, StateEvent } from '../../contracts/events/event.ts'
import { sampleEvents } from './sample.ts'

export const batchEventsMax = 1_000
// Spontaneous pledges of this run that may still change, the youngest.
const changeableMax = 200
// After a pause the process does not make up for the missed time.
const elapsedMsMax = 10_000
// Of spontaneous events, the average.
const eventsPerSecond = 1.2
// A campaign that is about to end gets no spontaneous pledge.
const lastMs = 60_000

/**
 * `next` returns the events since the last call, at most `batchEventsMax`, and the rest with the next call. Versions of one entity
 * grow. `now`, and `endMs`, when the history ended, are Unix ms. If the clock was set back, time stands still. `random`: 0 to 1, without 1.
 */
export function demoTrickle({ endMs, random }: { endMs: number; random: () => number }) {
  const campaigns = new Map<string, CampaignState>()
  const lastStatus = new Map<string, string>()
  let examples: PledgeState[] = []
  let changeable: PledgeState[] = []
  let clock = endMs
  let version = endMs * 1_000
  let lastCall: number | undefined

  for (const { type, data } of sampleEvents(endMs))
    if (type === 'campaign') lastStatus.set(data.campaign_id, data.status)
  const recorded = sampleEvents(endMs)
  let coming = recorded.next()
  // What happened before is only learned.
  Array.from(due())

  /** The recorded events whose time has come. */
  function* due(): Generator<StateEvent> {
    while (!coming.done && coming.value.data.changed_at <= clock) {
      const event = coming.value
      coming = recorded.next()
      if (event.type === 'campaign') campaigns.set(event.data.campaign_id, event.data)
      if (event.type === 'pledge' && event.data.status === 'ACTIVE') examples.push(event.data)
      yield event
    }
  }

  // Only to a campaign that is funded in the end: a spontaneous pledge must not rescue one that fails.
  function isOpen({ campaign_id }: PledgeState): boolean {
    const campaign = campaigns.get(campaign_id)
    if (campaign?.status !== 'LIVE' || lastStatus.get(campaign_id) !== 'FUNDED') return false
    return Number(campaign.end_date) > clock + lastMs
  }

  // What an earlier run sold of a limited tier is not known. So a spontaneous pledge takes none.
  function isUnlimited({ campaign_id, reward_id }: PledgeState): boolean {
    const tier = campaigns.get(campaign_id)?.rewards.find(reward => reward.reward_id === reward_id)
    return tier === undefined || tier.quantity_available === null
  }

  /** A new pledge like one that was recorded, or a change of an earlier spontaneous one. */
  function spontaneous(): PledgeState | undefined {
    version = Math.max(version, clock * 1_000) + 1
    const stamp = { version, changed_at: clock }
    const index = Math.floor(random() * changeable.length)
    const earlier = random() < 0.1 ? changeable[index] : undefined
    if (earlier !== undefined) {
      changeable.splice(index, 1)
      if (!isOpen(earlier)) return undefined
      if (random() < 0.5) return { ...earlier, ...stamp, status: 'CANCELLED' }
      return {
        ...earlier,
        ...stamp,
        amount_minor: 2 * Number(earlier.amount_minor),
        platform_amount_minor: 2 * Number(earlier.platform_amount_minor),
      }
    }
    const example = examples[Math.floor(random() * examples.length)]
    if (example === undefined || !isOpen(example) || !isUnlimited(example)) return undefined
    const id = version.toString(36)
    const pledge = { ...example, ...stamp, pledge_id: `plg_${id}` }
    if (random() < 0.4) pledge.backer_id = `bkr_${id}`
    changeable = [...changeable, pledge].slice(-changeableMax)
    return pledge
  }

  return {
    next(now: number): StateEvent[] {
      clock = Math.max(clock, Math.floor(now))
      const events = due().take(batchEventsMax).toArray()
      const elapsedMs = Math.min(elapsedMsMax, lastCall === undefined ? 1_000 : clock - lastCall)
      lastCall = clock
      examples = examples.filter(isOpen)
      const expected = (eventsPerSecond * elapsedMs) / 1_000
      const count = Math.min(batchEventsMax - events.length, Math.floor(2 * random() * expected + random()))
      for (let i = 0; i < count; i++) {
        const data = spontaneous()
        if (data) events.push({ type: 'pledge', data })
      }
      return events
    },
  }
}
