import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currentStateReader, encodeState, unframe } from '../../contracts/events/codec.ts'
import type { ChangeEvent, StateEvent } from '../../contracts/events/event.ts'
import { faultOf } from '../../contracts/events/rules.ts'
import { shuffledWithNoise, worldEvents } from '../support/arbitraries.ts'
import { readModelOf } from '../support/model.ts'

const noisyWorlds = worldEvents().chain(events => fc.tuple(fc.constant(events), shuffledWithNoise(events)))

describe('small worlds of events', () => {
  test('every event keeps the rules and survives the wire', () => {
    const readers = { campaign: currentStateReader('campaign'), pledge: currentStateReader('pledge') }
    fc.assert(
      fc.property(noisyWorlds, ([, noisy]) => {
        for (const event of noisy) {
          expect(faultOf(event)).toBeUndefined()
          if (event.data === null || event.type === 'api-key') continue
          const unframed = unframe(encodeState(event as StateEvent))
          if (!('avroBinary' in unframed)) throw new Error(unframed.reason)
          expect({ ...readers[event.type](unframed.avroBinary) }).toEqual(event.data)
        }
      }),
    )
  })

  test('equal versions of one entity carry equal content', () => {
    fc.assert(
      fc.property(noisyWorlds, ([, noisy]) => {
        const contents = new Map<string, ChangeEvent['data']>()
        for (const event of noisy) {
          const name = `${event.type} ${event.key} ${event.data?.version ?? 'deleted'}`
          expect(event.data).toEqual(contents.has(name) ? contents.get(name) : event.data)
          contents.set(name, event.data)
        }
      }),
      { numRuns: 300 },
    )
  })

  test('noise loses no event, and only adds what is known or stale', () => {
    fc.assert(
      fc.property(noisyWorlds, ([events, noisy]) => {
        expect(new Set(noisy).isSupersetOf(new Set(events))).toBe(true)
        expect(noisy.length).toBeLessThanOrEqual(3 * events.length)
      }),
    )
  })

  test('what is hard is there: hidden campaigns, tombstones, oversold tiers, shared backers, large versions', () => {
    const seen = {
      hidden: 0,
      tombstones: 0,
      oversold: 0,
      sharedBackers: 0,
      largeVersions: 0,
      stale: 0,
      reordered: 0,
      orphans: 0,
    }
    const currencies = new Set<string>()
    for (const [events, noisy] of fc.sample(noisyWorlds, { numRuns: 300, seed: 1 })) {
      const { campaigns, platform } = readModelOf(events)
      const readings = [...campaigns.values()]
      const backers = readings.reduce((sum, { backerCount }) => sum + backerCount, 0)
      const known = new Set(events.filter(({ type }) => type === 'campaign').map(({ key }) => key))
      for (const { campaign } of readings) currencies.add(campaign.currency)
      seen.hidden += known.size > campaigns.size ? 1 : 0
      seen.tombstones += events.some(({ data }) => data === null) ? 1 : 0
      seen.oversold += readings.some(({ campaign, rewards }) =>
        rewards.some(
          ({ claimed }, i) => claimed > Number(campaign.rewards[i]?.quantity_available ?? claimed),
        ),
      )
        ? 1
        : 0
      seen.sharedBackers += backers > platform.totalBackers ? 1 : 0
      seen.largeVersions += events.some(({ data }) => typeof data?.version === 'bigint') ? 1 : 0
      seen.stale += noisy.some(({ data }) => data?.version === 0) ? 1 : 0
      seen.reordered += noisy[0] !== events[0] ? 1 : 0
      seen.orphans += events.some(
        ({ type, data }) => type === 'pledge' && data && 'pledge_id' in data && !known.has(data.campaign_id),
      )
        ? 1
        : 0
    }
    for (const [what, worlds] of Object.entries(seen)) expect(worlds, what).toBeGreaterThan(5)
    expect(currencies).toEqual(new Set(['USD', 'EUR', 'JPY', 'KWD', 'CLF']))
  })
})
