import { expect, test } from 'vitest'
import { encodeState } from '../../contracts/events/codec.ts'
import { isPublicStatus, keyOf } from '../../contracts/events/event.ts'
import { faultOf } from '../../contracts/events/rules.ts'
import { campaignVersions, eventCount, historyEvents } from './rebuild-history.ts'

const size = { campaigns: 1_000, pledges: 5_000 }
const events = [...historyEvents(size)]

test('a history has the requested size, and its events obey the rules and fit the schemas', () => {
  expect(events).toHaveLength(eventCount(size))
  for (const event of events) {
    expect(faultOf({ ...event, key: keyOf(event) })).toBeUndefined()
    encodeState(event)
  }
})

test('every campaign ends public, and no two of its states have the same version', () => {
  const campaigns = events.flatMap(event => (event.type === 'campaign' ? [event.data] : []))
  const versions = new Set(campaigns.map(({ campaign_id, version }) => `${campaign_id} ${version}`))
  expect(versions.size).toBe(size.campaigns * campaignVersions)
  const latest = campaigns.filter(({ version }) => version === campaignVersions)
  expect(latest.filter(({ status }) => isPublicStatus(status))).toHaveLength(size.campaigns)
})

test('every run replays the same events', () => {
  expect([...historyEvents(size)]).toEqual(events)
})
