/** verify() against a model of the service: whatever is wrong with a copy is found, told and repaired. */
import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { numberOf } from '../../../contracts/api/client/digest.ts'
import type { Verdict } from '../../../contracts/api/client.ts'
import type { Project } from '../../../contracts/api/schemas.ts'
import { clients } from '../../clients/python-bridge.ts'
import { createServiceModel, horizonMs, type ModelSettings, type ServiceModel } from './client-model.ts'
import {
  clientOf,
  createCopy,
  differences,
  memoryStore,
  minuteMs,
  modelOf,
  onOutage,
  playedBy,
  untilOver,
  type World,
  world,
  worldMs,
} from './client-worlds.ts'

type Copy = Map<string, Project>

const earlier = '2020-01-01T00:00:00.000Z'
const later = '2030-01-01T00:00:00.000Z'

/** Each returns the ids that it damages. */
const damages = {
  lost: (copy: Copy, id: string) => (copy.delete(id) ? [id] : []),
  extra: (copy: Copy, id: string) => put(copy, [...copy.values()][0], { id: `extra ${id}` }),
  stale: (copy: Copy, id: string) => put(copy, copy.get(id), { updated_at: earlier, title: 'damaged' }),
  newer: (copy: Copy, id: string) => put(copy, copy.get(id), { updated_at: later, title: 'damaged' }),
  'all gone': (copy: Copy) => {
    const ids = [...copy.keys()]
    copy.clear()
    return ids
  },
}

function put(copy: Copy, project: Project | undefined, changes: Partial<Project>): string[] {
  if (project === undefined) return []
  const damaged = { ...project, ...changes }
  copy.set(damaged.id, damaged)
  return [damaged.id]
}

const damage = fc.record({
  kind: fc.constantFrom(...(Object.keys(damages) as (keyof typeof damages)[])),
  id: fc.nat(39).map(number => `c${number}`),
})

/** A copy that was mirrored until some moment of its world, and what belongs to it. */
async function mirrored(world: World, untilMs: number, settings?: Partial<ModelSettings>) {
  const model = modelOf(world, { removalsFrom: -minuteMs, ...settings })
  const { projects: copy, apply } = createCopy()
  const store = memoryStore()
  const client = clientOf(model)
  const { pageSize } = world
  const signal = model.endAt(untilMs)
  const follow = async (until: AbortSignal) => {
    const reconcile = { held: () => copy.keys() }
    for await (const change of client.mirror({ store, pageSize, reconcile, onOutage, signal: until }))
      apply(change)
  }
  await untilOver(signal, () => follow(signal))
  const verify = () => client.verify({ held: () => copy.values(), apply, store, pageSize })
  return { model, copy, store, verify, follow }
}

const quietAt = worldMs + 30 * minuteMs
const state = { title: 'a', category: 'Film', launchDay: 1 }
const nothing = { wasEqual: true, lacking: [], leftOver: [], stale: [] }

function sorted({ lacking, leftOver, stale }: Verdict) {
  return { lacking: lacking.toSorted(), leftOver: leftOver.toSorted(), stale: stale.toSorted() }
}

/** Requests that were answered or not, without the repetitions after a fault. */
const requestsOf = (model: ServiceModel, from: number) => new Set(model.requests.slice(from))

describe.each(clients)('verify, in $language', client => {
  const runs = playedBy(client)

  it('says with one request that a copy is equal, if a mirror keeps it', async () => {
    await fc.assert(
      fc.asyncProperty(world, async world => {
        const { model, copy, verify } = await mirrored(world, quietAt)
        const before = model.requests.length
        expect(await verify()).toMatchObject(nothing)
        expect(requestsOf(model, before).size).toBe(1)
        expect(differences(model, copy)).toEqual({ lost: [], gone: [] })
      }),
      { numRuns: runs(40) },
    )
  })

  it.each(Object.keys(damages) as (keyof typeof damages)[])(
    'tells exactly what is wrong, and repairs it: %s',
    async kind => {
      const ids = fc.uniqueArray(
        fc.nat(39).map(number => `c${number}`),
        { minLength: 1, maxLength: 5 },
      )
      const digests = fc.constantFrom('all' as const, 'of everything' as const, 'none' as const)
      await fc.assert(
        fc.asyncProperty(world, ids, digests, async (world, ids, digests) => {
          const { model, copy, verify } = await mirrored(world, quietAt, { digests })
          const damaged = [...new Set(ids.flatMap(id => damages[kind](copy, id)))].toSorted()
          const verdict = await verify()
          const isLost = kind === 'lost' || kind === 'all gone'
          expect(sorted(verdict)).toEqual({
            lacking: isLost ? damaged : [],
            leftOver: kind === 'extra' ? damaged : [],
            stale: kind === 'stale' || kind === 'newer' ? damaged : [],
          })
          expect(verdict.wasEqual).toBe(damaged.length === 0)
          expect(differences(model, copy)).toEqual({ lost: [], gone: [] })
          if (digests !== 'none') expect(await verify()).toMatchObject(nothing)
        }),
        { numRuns: runs(20) },
      )
    },
  )

  it.each([
    ['with an older answer', 'of everything', 7, 500],
    ['before its rows', 'all', 2, 50],
  ] as const)(
    'walks a right copy at most once, and finds nothing wrong, if campaigns change all the time and the digest comes %s',
    async (_, digests, pageSize, everyMs) => {
      const happening = (at: number, id: number) => ({ at, visibleAfterMs: 0, id: `c${id}`, state })
      const model = createServiceModel({
        happenings: [
          ...Array.from({ length: 20 }, (_, id) => happening(-minuteMs, id)),
          ...Array.from({ length: 2_000_000 / everyMs }, (_, step) => happening(everyMs * step, step % 20)),
        ],
        removalsFrom: -minuteMs,
        digests,
        latencyMs: () => 1_000,
      })
      const { projects: copy, apply } = createCopy()
      for (const [id, project] of model.publicCampaigns()) copy.set(id, project)
      const store = memoryStore(new Date(model.now() - horizonMs).toISOString())
      const options = { held: () => copy.values(), apply, store, pageSize }
      expect(await clientOf(model).verify(options)).toMatchObject(nothing)
      expect(model.requests.filter(path => path === `/projects?limit=${pageSize}`)).toHaveLength(1)
    },
  )

  it('says that a copy is equal as of the older answer that had the digest', async () => {
    const happening = { at: -minuteMs, visibleAfterMs: 0, id: 'c1', state }
    const model = createServiceModel({
      happenings: [happening, { ...happening, at: 10_000, state: null }],
      removalsFrom: -minuteMs,
      digests: 'of everything',
    })
    const { projects: copy, apply } = createCopy()
    for (const [id, project] of model.publicCampaigns()) copy.set(id, project)
    const asOf = new Date(model.now() - horizonMs).toISOString()
    // For another consumer, for a minute.
    await clientOf(model).list({ limit: 1 })
    await model.sleep(30_000)
    const options = { held: () => copy.values(), apply, store: memoryStore(asOf) }
    expect(await clientOf(model).verify(options)).toEqual({ ...nothing, asOf })
  })

  it('tells what is wrong and no later change, while campaigns change, come and go', async () => {
    const some = fc.array(damage, { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(world, some, fc.integer({ min: 2, max: 15 }), async (drawn, some, minutes) => {
        const world = { ...drawn, processes: [0] }
        const { model, copy, store, verify, follow } = await mirrored(world, minutes * minuteMs)
        if (store.watermark === null) return
        const before = new Map(copy)
        const since = store.watermark
        const damaged = new Set(some.flatMap(({ kind, id }) => damages[kind](copy, id)))
        const { lacking, leftOver, stale } = await verify()
        const told = new Set([...lacking, ...leftOver, ...stale])
        for (const id of told) expect(damaged, JSON.stringify([...damaged])).toContain(id)
        // Whatever changed since then came with a poll.
        const isSettled = (id: string) =>
          (before.get(id)?.updated_at ?? '') < since && isUnchanged(model, before, id)
        const expected = [...damaged].filter(id => copy.has(id) && isSettled(id) && !isSame(some, id))
        for (const id of expected) expect(told).toContain(id)
        const signal = model.endAt(quietAt)
        await untilOver(signal, () => follow(signal))
        expect(differences(model, copy)).toEqual({ lost: [], gone: [] })
      }),
      { numRuns: runs(60) },
    )
  })
})

it('has the same SHA-256 as everybody', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), text => {
      expect(numberOf(text).toString(16).padStart(16, '0')).toBe(hash('sha256', text, 'hex').slice(0, 16))
    }),
  )
})

function isUnchanged(model: ServiceModel, before: Copy, id: string): boolean {
  return model.publicCampaigns().get(id)?.updated_at === before.get(id)?.updated_at
}

/** Whether several damages may cancel each other. */
function isSame(some: readonly { id: string }[], id: string): boolean {
  return some.filter(one => one.id === id || `extra ${one.id}` === id).length > 1
}
