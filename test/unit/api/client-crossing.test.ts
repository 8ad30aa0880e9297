/** Edge cases of the client that a random test rarely reaches. Each case is written by hand. */
import { describe, expect, it } from 'vitest'
import type { MirrorOptions } from '../../../contracts/api/client.ts'
import { clients } from '../../clients/python-bridge.ts'
import {
  baseUrl,
  type CampaignState,
  createServiceModel,
  type Happening,
  type ServiceModel,
  startsAt,
} from './client-model.ts'
import { clientOf, memoryStore, minuteMs, onOutage, playedBy, untilOver } from './client-worlds.ts'

const before = -600_000

function state(launchDay: number): CampaignState {
  return { title: 'a', category: 'Games', launchDay }
}

function happening(at: number, id: string, state: CampaignState | null): Happening {
  return { at, visibleAfterMs: 0, id, state }
}

describe.each(clients)('in $language,', client => {
  playedBy(client)

  it('a walk gives up after a bounded number of pages if every page comes from a different snapshot', async () => {
    const model = createServiceModel({
      happenings: Array.from({ length: 16 }, (_, place) => happening(before, `c${place}`, state(place))),
      latencyMs: () => 1000,
      evicts: () => true,
    })
    const walked = clientOf(model).reconcile({ held: [], pageSize: 2 })
    const read = async () => {
      for await (const _ of walked);
    }
    await expect(read()).rejects.toMatchObject({ code: 'unstable_walk' })
    expect(model.requests.length).toBeLessThan(200)
  })

  it.each([
    ['100', 100, 12],
    ['5: a trail of several snapshots', 5, 120],
  ])(
    'a walk of many snapshots goes on though 5,001 campaigns changed in its second one, with pages of %s',
    async (_, pageSize, requestsPerMinute) => {
      const ids = Array.from({ length: 5_001 }, (_, place) => `c${place}`)
      const model = createServiceModel({
        happenings: [before, 90_000].flatMap(at => ids.map(id => happening(at, id, state(1)))),
        // A snapshot lives for a minute.
        requestsPerMinute,
      })
      const seen = new Set<string>()
      for await (const change of clientOf(model).reconcile({ held: [], pageSize })) {
        if (change.type === 'upsert') seen.add(change.project.id)
      }
      expect(seen.size).toBe(ids.length)
      expect(model.requests.length).toBeLessThan((2 * ids.length) / pageSize)
    },
  )

  it('a walk that goes on in an older snapshot, which another process has, does not take a campaign that moved since for one that stayed', async () => {
    const staying = [...'abcd'].map(id => happening(before, id, state(9)))
    const moving = [...'efghij'].flatMap(id => [
      happening(before, id, state(1)),
      happening(20_000, id, state(99)),
    ])
    const model = createServiceModel({
      happenings: [...staying, ...moving],
      process: request => (request >= 1 && request <= 3 ? 1 : 0),
    })
    // For another consumer.
    await model.fetch(`${baseUrl}/projects?limit=2`)
    await model.sleep(40_000)
    const seen = new Set<string>()
    for await (const change of clientOf(model).reconcile({ held: [], pageSize: 2 })) {
      if (change.type === 'upsert') seen.add(change.project.id)
    }
    expect([...seen].sort().join('')).toBe('abcdefghij')
  })

  it('reconcile does not remove a campaign that moved to a page that was read already', async () => {
    const founded = [...'abcdefgh'].map((id, place) => happening(before, id, state(100 - 10 * place)))
    const model = createServiceModel({
      happenings: [...founded, happening(3600, 'h', state(200))],
      latencyMs: () => 1000,
      evicts: request => request === 4,
    })
    const told: string[] = []
    for await (const change of clientOf(model).reconcile({ held: ['a', 'h'], pageSize: 1 })) {
      told.push(change.type === 'removed' ? `${change.id} is removed` : change.project.id)
    }
    expect(told).toContain('h')
    expect(told.filter(text => text.endsWith('removed'))).toEqual([])
  })

  it('a mirror refuses a store that another iteration uses, until that iteration has ended', async () => {
    const client = clientOf(createServiceModel({ happenings: [happening(before, 'c1', state(1))] }))
    const store = memoryStore()
    const first = client.mirror({ store })
    await first.next()
    await expect(client.reconcile({ held: [], store }).next()).rejects.toMatchObject({ code: 'store_in_use' })
    await first.return(undefined as never)
    await expect(client.reconcile({ held: [], store }).next()).resolves.toMatchObject({ done: false })
  })

  it('a mirror does not report an unchanged campaign twice', async () => {
    // The first poll finds it again, because a watermark lags behind.
    const model = createServiceModel({ happenings: [happening(-1000, 'c1', state(100))] })
    expect(await told(model, model.now, {}, 5 * minuteMs)).toEqual(['c1'])
  })

  it('a mirror is told of more removals than can be read from one snapshot, and of the changes after them', async () => {
    const gone = Array.from({ length: 1_200 }, (_, number) => `gone ${number}`)
    const model = createServiceModel({
      happenings: [
        ...gone.flatMap((id, number) => [happening(0, id, state(1)), happening(1 + number, id, null)]),
        happening(2_000, 'kept', state(1)),
      ],
      removalsFrom: before,
      // A snapshot lives for a minute.
      requestsPerMinute: 5,
    })
    await model.sleep(minuteMs)
    const store = memoryStore(new Date(startsAt).toISOString())
    expect(await told(model, model.now, { store }, 20 * minuteMs)).toEqual([...gone, 'kept'])
  })

  it('a mirror goes on in time if the clock of its consumer is set back', async () => {
    const model = createServiceModel({
      happenings: [happening(10 * minuteMs, 'late', state(1))],
      removalsFrom: before,
    })
    // During a poll.
    const now = () => model.now() - (model.requests.length < 10 ? 0 : 60 * minuteMs)
    expect(await told(model, now, {}, 15 * minuteMs)).toEqual(['late'])
  })
})

/** The ids of all changes until the model's time is over. */
async function told(
  model: ServiceModel,
  now: () => number,
  options: Partial<MirrorOptions>,
  ms: number,
): Promise<string[]> {
  const ids: string[] = []
  const signal = model.endAt(ms)
  await untilOver(signal, async () => {
    for await (const change of clientOf({ ...model, now }).mirror({ ...options, onOutage, signal })) {
      ids.push(change.type === 'removed' ? change.id : change.project.id)
    }
  })
  return ids
}
