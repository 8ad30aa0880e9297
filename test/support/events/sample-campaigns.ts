/** The demo's history with as many campaigns as a test or a bench wants. */
import type { StateEvent } from '../../../contracts/events/event.ts'
import { sampleEvents } from '../../../services/demo/sample.ts'

const recorded = 400

/** The events up to `now` of so many campaigns: every nth of the recorded ones, or all of them and copies under other ids. */
export function* sampleCampaigns(now: number, count: number): Generator<StateEvent> {
  for (let copy = 0; copy * recorded < count; copy++) {
    const share = Math.min(1, count / recorded - copy)
    const isTaken = new Map<string, boolean>()
    for (const event of sampleEvents(now)) {
      if (event.type === 'api-key' || event.data.changed_at > now) break
      const { campaign_id } = event.data
      const index = isTaken.size
      if (!isTaken.has(campaign_id))
        isTaken.set(campaign_id, Math.floor((index + 1) * share) > Math.floor(index * share))
      if (isTaken.get(campaign_id)) yield copy === 0 ? event : copied(event, copy)
    }
  }
}

function copied(event: Exclude<StateEvent, { type: 'api-key' }>, copy: number): StateEvent {
  const campaign_id = `${event.data.campaign_id}_${copy}`
  if (event.type === 'pledge') return { type: 'pledge', data: { ...event.data, campaign_id } }
  return { type: 'campaign', data: { ...event.data, campaign_id, slug: `${event.data.slug}-${copy}` } }
}
