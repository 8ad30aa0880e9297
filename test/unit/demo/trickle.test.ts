import { describe, expect, test } from 'vitest'
import { type ChangeEvent, keyOf, type StateEvent } from '../../../contracts/events/event.ts'
import { faultOf } from '../../../contracts/events/rules.ts'
import { demoEvents } from '../../../services/demo/platform.ts'
import { batchEventsMax, demoTrickle } from '../../../services/demo/trickle.ts'
import { readModelOf } from '../../support/model.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const loadedAt = Date.UTC(2026, 10, 20, 12)
const options = { seed: 'trickle', now: loadedAt, campaigns: 240 }
const history = [...demoEvents(options)]

/** What one run of a process says that is awake from `from` to `to` and looks every `everyMs`. */
function runOf({ from, to, everyMs }: { from: number; to: number; everyMs: number }): StateEvent[] {
  const trickle = demoTrickle(options)
  const events: StateEvent[] = []
  for (let now = from; now <= to; now += everyMs) events.push(...trickle.next(now))
  return events
}

function toChange(event: StateEvent): ChangeEvent {
  return { ...event, key: keyOf(event) }
}

const isPlanned = (event: StateEvent): boolean => Number(event.data.version) % 1000 === 0

describe('the trickle', () => {
  const firstHour = runOf({ from: loadedAt + 1000, to: loadedAt + hour, everyMs: 1000 })

  test('about one event a second comes, most of them new pledges, and all keep the rules', () => {
    expect(firstHour.length).toBeGreaterThan(0.7 * 3_600)
    expect(firstHour.length).toBeLessThan(2 * 3_600)
    expect(firstHour.flatMap(event => faultOf(toChange(event)) ?? [])).toEqual([])
    const pledges = firstHour.flatMap(event => (event.type === 'pledge' ? [event.data] : []))
    expect(pledges.filter(({ status }) => status === 'ACTIVE').length).toBeGreaterThan(0.6 * firstHour.length)
    expect(pledges.filter(({ status }) => status === 'CANCELLED').length).toBeGreaterThan(10)
  })

  test('within minutes there is more to see: a campaign launches, one ends, followers move, a pledge is amended', () => {
    const known = new Map(history.map(event => [keyOf(event), event.data]))
    const seen = new Set<string>()
    for (const event of firstHour) {
      const before = known.get(keyOf(event))
      known.set(keyOf(event), event.data)
      if (!before || !('status' in before)) continue
      if (before.status !== event.data.status) seen.add(`${before.status} -> ${event.data.status}`)
      if (event.type === 'campaign' && 'follower_count' in before) {
        if (event.data.follower_count > before.follower_count) seen.add('followers')
      }
      if (event.type === 'pledge' && 'amount_minor' in before) {
        if (event.data.amount_minor > before.amount_minor) seen.add('amended')
      }
    }
    expect([...seen]).toEqual(
      expect.arrayContaining(['APPROVED -> LIVE', 'ACTIVE -> CANCELLED', 'followers', 'amended']),
    )
    expect(seen.has('LIVE -> FUNDED') || seen.has('LIVE -> FAILED')).toBe(true)
  })

  test('in one run every entity’s versions grow, on from the history’s', () => {
    const versions = new Map(history.map(event => [keyOf(event), Number(event.data.version)]))
    const wrong = firstHour.filter(event => {
      const version = Number(event.data.version)
      const before = versions.get(keyOf(event)) ?? loadedAt * 1000
      versions.set(keyOf(event), version)
      return !Number.isSafeInteger(version) || version <= before
    })
    expect(wrong).toEqual([])
  })

  test('pledges come only to campaigns that are live at that time', () => {
    const status = new Map<string, string>()
    for (const event of history) if (event.type === 'campaign') status.set(keyOf(event), event.data.status)
    const known = new Set(history.map(keyOf))
    const wrong: StateEvent[] = []
    for (const event of runOf({ from: loadedAt, to: loadedAt + 30 * day, everyMs: hour })) {
      if (event.type === 'campaign') status.set(keyOf(event), event.data.status)
      else if (event.type === 'pledge' && !known.has(keyOf(event))) {
        known.add(keyOf(event))
        if (status.get(event.data.campaign_id) !== 'LIVE') wrong.push(event)
      }
    }
    expect(wrong).toEqual([])
  })

  test('at the end of all campaigns the funded have reached their goals, the failed have not, and nothing happens any more', () => {
    const to = loadedAt + 260 * day
    const after = runOf({ from: loadedAt, to, everyMs: 2 * hour })
    const { campaigns, platform } = readModelOf([...history, ...after].map(toChange))
    expect(platform.projectsLive).toBe(0)
    for (const { campaign, pledgedMinor } of campaigns.values()) {
      const goal = BigInt(campaign.goal_amount_minor)
      if (campaign.status === 'FUNDED') expect(pledgedMinor).toBeGreaterThanOrEqual(goal)
      if (campaign.status === 'FAILED') expect(pledgedMinor).toBeLessThan(goal)
      expect(campaign.end_date).toBeLessThanOrEqual(to)
    }
    expect(after.at(-1)?.data.changed_at).toBeLessThan(to - 30 * day)
  })

  test('a restart collides with no run before it: the same version of an entity is the same event', () => {
    const runs = [
      runOf({ from: loadedAt + 500, to: loadedAt + 20 * minute, everyMs: 1000 }),
      runOf({ from: loadedAt + 21 * minute, to: loadedAt + 40 * minute, everyMs: 1000 }),
      runOf({ from: loadedAt + 3 * day, to: loadedAt + 3 * day + 20 * minute, everyMs: 1000 }),
    ]
    const known = new Map<string, string>()
    const wrong = runs.flat().filter(event => {
      const name = `${keyOf(event)} ${event.data.version}`
      const text = JSON.stringify(event)
      const isOther = (known.get(name) ?? text) !== text
      known.set(name, text)
      return isOther
    })
    expect(wrong).toEqual([])
    const spontaneous = runs.map(run =>
      run.flatMap(event => (event.type === 'pledge' && !isPlanned(event) ? [event.data.pledge_id] : [])),
    )
    const ids = spontaneous.map(own => new Set(own))
    expect(ids.reduce((sum, { size }) => sum + size, 0)).toBe(new Set(spontaneous.flat()).size)
  })

  test('restarts, at any time and after any pause, leave every campaign as one that was never interrupted', () => {
    const to = loadedAt + 40 * day
    const restarted = [
      runOf({ from: loadedAt, to: loadedAt + 2 * day, everyMs: hour }),
      runOf({ from: loadedAt + 2 * day + 1, to: loadedAt + 5 * day, everyMs: 40 * minute }),
      runOf({ from: loadedAt + 20 * day, to, everyMs: hour }),
    ].flat()
    const whole = runOf({ from: loadedAt, to, everyMs: hour })
    const planned = (events: StateEvent[]) =>
      readModelOf([...history, ...events].filter(isPlanned).map(toChange))
    expect(planned(restarted).platform).toEqual(planned(whole).platform)
    const { campaigns } = readModelOf([...history, ...restarted].map(toChange))
    for (const { campaign, pledgedMinor } of campaigns.values()) {
      const goal = BigInt(campaign.goal_amount_minor)
      if (campaign.status === 'FUNDED') expect(pledgedMinor).toBeGreaterThanOrEqual(goal)
      if (campaign.status === 'FAILED') expect(pledgedMinor).toBeLessThan(goal)
    }
  })

  test('no batch is larger than its bound, however long the pause was', () => {
    const trickle = demoTrickle({ ...options, eventsPerSecond: 50 })
    const sizes = Array.from({ length: 30 }, () => trickle.next(loadedAt + 60 * day).length)
    expect(Math.max(...sizes)).toBe(batchEventsMax)
    expect(sizes.at(-1)).toBeLessThan(batchEventsMax)
  })

  test('a clock that stands still or goes back breaks nothing', () => {
    const trickle = demoTrickle({ ...options, eventsPerSecond: 20 })
    const times = [hour, hour, 1_000, 2_000, 3_000, -day, hour + 1_000, hour + 2_000]
    const events = times.flatMap(time => trickle.next(loadedAt + time))
    const versions = new Map<string, number>()
    const wrong = events.filter(event => {
      const version = Number(event.data.version)
      const isOld = version <= (versions.get(keyOf(event)) ?? loadedAt * 1000)
      versions.set(keyOf(event), version)
      return isOld
    })
    expect(wrong).toEqual([])
    expect(events.length).toBeGreaterThan(20)
    const changedAt = events.map(({ data }) => data.changed_at)
    expect(changedAt).toEqual(changedAt.toSorted((a, b) => a - b))
  })

  test('limited tiers are not oversold by it', () => {
    const after = runOf({ from: loadedAt, to: loadedAt + 10 * day, everyMs: hour })
    const { campaigns } = readModelOf([...history, ...after].map(toChange))
    for (const { campaign, rewards } of campaigns.values()) {
      for (const [i, { claimed }] of rewards.entries()) {
        const available = campaign.rewards[i]?.quantity_available
        if (typeof available === 'number') expect(claimed).toBeLessThanOrEqual(available)
      }
    }
  })
})
