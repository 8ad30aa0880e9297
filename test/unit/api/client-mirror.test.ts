/** mirror() and reconcile() against a model of the service: no change is lost, whatever moves, fails or is killed. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Client, ClientError, MirrorOptions } from '../../../contracts/api/client.ts'
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

type Held = () => Iterable<string>

/** A download may break off, too. */
function onBreak(error: ClientError): void {
  if (error.message !== 'the whole copy broke off') onOutage(error)
}

const hourMs = 60 * minuteMs
const state = { title: 'a', category: 'Film', launchDay: 1 }
const oneLeavesAfterAnHour = [
  { at: -minuteMs, visibleAfterMs: 0, id: 'c1', state },
  { at: -minuteMs, visibleAfterMs: 0, id: 'c2', state },
  { at: hourMs, visibleAfterMs: 0, id: 'c2', state: null },
]

describe.each(clients)('in $language,', client => {
  const runs = playedBy(client)

  it('a mirror loses no change, whatever moves, fails or becomes visible late, and though its consumer is killed at any change', async () => {
    const kills = fc.array(fc.nat(60), { maxLength: 10 })
    await fc.assert(
      fc.asyncProperty(world, kills, async (world, kills) => {
        const model = modelOf(world)
        const { copy } = await mirrored(model, world, kills, () => ({}))
        expect(differences(model, copy).lost).toEqual([])
      }),
      { numRuns: runs(60) },
    )
  })

  it.each<
    [string, (at: number) => Partial<ModelSettings>, { killsMax: number; walks: boolean; everyMs?: number }]
  >([
    [
      'after each comparison, if the service tells no removals',
      () => ({}),
      { killsMax: 0, walks: true, everyMs: 5 * minuteMs },
    ],
    [
      'without a further walk, if the service tells removals',
      () => ({ removalsFrom: -minuteMs }),
      { killsMax: 5, walks: false },
    ],
    [
      'after a comparison, if it was away for longer than removals are kept',
      at => ({ removalsFrom: minuteMs + at / 2 }),
      { killsMax: 0, walks: true },
    ],
    [
      'without a further walk, if removals were switched off for a minute',
      at => ({ removalsFrom: -minuteMs, removalsOff: { at, forMs: minuteMs } }),
      { killsMax: 0, walks: false },
    ],
    [
      'if removals were switched off for longer than they are kept',
      at => ({ removalsFrom: at + 4 * minuteMs, removalsOff: { at, forMs: 5 * minuteMs } }),
      { killsMax: 0, walks: true },
    ],
  ])('a mirror keeps nothing that is gone, %s', async (_, settingsAt, { killsMax, walks, everyMs }) => {
    const kills = fc.array(fc.nat(60), { maxLength: killsMax })
    await fc.assert(
      fc.asyncProperty(world, kills, fc.nat(worldMs), async (world, kills, at) => {
        const model = modelOf(world, settingsAt(at))
        const more = (held: Held) => ({ reconcile: { held, ...(everyMs && { everyMs }) } })
        const mirror = await mirrored(model, world, kills, more)
        expect(differences(model, mirror.copy)).toEqual({ lost: [], gone: [] })
        if (!walks) expect(mirror.walks).toEqual([])
      }),
      { numRuns: runs(100) },
    )
  })

  it('a mirror starts with a whole copy, and goes on from its watermark without a seam and without a walk', async () => {
    const copied = { at: fc.nat(worldMs / 2), readAfterMs: fc.nat(minuteMs), breaksOff: fc.nat(2) }
    const made = fc.option(fc.record({ copy: fc.record(copied), startsAfterMs: fc.nat(worldMs / 2) }))
    await fc.assert(
      fc.asyncProperty(world, made, fc.array(fc.nat(60), { maxLength: 5 }), async (world, made, kills) => {
        const model = modelOf(world, { removalsFrom: -minuteMs, ...(made && { copy: made.copy }) })
        if (made) await model.sleep(made.copy.at + made.copy.readAfterMs + made.startsAfterMs)
        const mirror = await mirrored(model, world, kills, (held, client) => ({
          from: () => client.wholeCopy(),
          reconcile: { held },
        }))
        expect(differences(model, mirror.copy)).toEqual({ lost: [], gone: [] })
        // Without a whole copy it walks.
        const walks = model.requests.filter(path => /^\/projects(?!.*updated_since)/.test(path))
        if (made) expect(walks).toEqual([])
      }),
      { numRuns: runs(120) },
    )
  })

  it('a mirror that is restarted every 23 hours compares its copy once a start, if the service does not tell removals', async () => {
    const model = createServiceModel({ happenings: oneLeavesAfterAnHour })
    const [copy, store] = [createCopy(), memoryStore()]
    const reconcile = { held: () => copy.projects.keys() }
    for (const start of [1, 2, 3]) {
      const signal = model.endAt(start * 23 * hourMs)
      await untilOver(signal, async () => {
        const options = { store, reconcile, intervalMs: hourMs, signal }
        for await (const change of clientOf(model).mirror(options)) copy.apply(change)
      })
    }
    expect([...copy.projects.keys()]).toEqual(['c1'])
    const walks = model.requests.filter(
      path => path.startsWith('/projects') && !path.includes('updated_since'),
    )
    expect(walks).toHaveLength(3)
  })

  it('a mirror compares its copy in time though its clock was set back two days', async () => {
    const model = createServiceModel({ happenings: oneLeavesAfterAnHour })
    const copy = createCopy()
    let setBackMs = 0
    const store = {
      load: () => null,
      save() {
        setBackMs = 48 * hourMs
      },
    }
    const reconcile = { everyMs: hourMs, held: () => copy.projects.keys() }
    const signal = model.endAt(3 * hourMs)
    await untilOver(signal, async () => {
      const client = clientOf({ ...model, now: () => model.now() - setBackMs })
      for await (const change of client.mirror({ store, reconcile, signal })) copy.apply(change)
    })
    expect([...copy.projects.keys()]).toEqual(['c1'])
  })

  it.each([
    ['it was killed', true],
    ['every try of its walk failed', false],
  ])(
    'a mirror has a campaign that came back, though an older answer said that it had left, and then %s',
    async (_, isKilled) => {
      const model = createServiceModel({
        happenings: [-minuteMs, 10_000, 30_000].map((at, n) => {
          return { at, visibleAfterMs: 0, id: 'c1', state: n === 1 ? null : state }
        }),
        removalsFrom: -minuteMs,
        fault: request => (!isKilled && request > 1 && request < 12 ? 'network' : undefined),
      })
      const storeOfNow = () => memoryStore(new Date(model.now() - horizonMs).toISOString())
      await model.sleep(20_000)
      // This answer is kept for a minute, also for others.
      await clientOf(model).mirror({ store: storeOfNow() }).next()
      await model.sleep(25_000)
      const copy = createCopy()
      for (const [id, project] of model.publicCampaigns()) copy.projects.set(id, project)
      const signal = model.endAt(20 * minuteMs)
      const options = { store: storeOfNow(), onOutage: () => {}, signal }
      const told: string[] = []
      const follow = async (isKilled: boolean) => {
        for await (const change of clientOf(model).mirror(options)) {
          copy.apply(change)
          told.push(change.type)
          if (isKilled) return
        }
      }
      if (isKilled) {
        await follow(true)
        await model.sleep(minuteMs)
      }
      await untilOver(signal, () => follow(false))
      expect(told[0]).toBe('removed')
      expect(differences(model, copy.projects)).toEqual({ lost: [], gone: [] })
    },
  )

  it('reconcile reports no removal that is only an artefact of the walk', async () => {
    await fc.assert(
      fc.asyncProperty(world, async world => {
        const held = new Set(Array.from({ length: 40 }, (_, n) => `c${n}`))
        const model = modelOf(world)
        // No campaign becomes public or stops being public, so the set is the same at the end.
        const staying = modelOf({
          ...world,
          happenings: world.happenings.filter(({ at, state }) => at < 0 || state),
        })
        const left = new Set(world.happenings.filter(({ state }) => !state).map(({ id }) => id))
        for (const run of [model, staying]) {
          // Each reconciliation but the first may read a snapshot that is older than itself.
          for (let times = 0; times < 12; times++) {
            await run.sleep(minuteMs / 2)
            const atStart = run.publicCampaigns()
            const removed = await removedBy(run, held, world.pageSize)
            if (run === staying) expect(removed.filter(id => atStart.has(id))).toEqual([])
            expect(removed.filter(id => atStart.has(id) && !left.has(id))).toEqual([])
          }
        }
      }),
      { numRuns: runs(60) },
    )
  })
})

/** A copy through kills, and the requests for all campaigns after the first walk. */
async function mirrored(
  model: ServiceModel,
  { pageSize }: World,
  kills: readonly number[],
  moreOf: (held: Held, client: Client) => Pick<MirrorOptions, 'from' | 'reconcile'>,
) {
  const copy = createCopy()
  const store = memoryStore()
  let walkedAt = Infinity
  const saving = {
    ...store,
    save(watermark: string) {
      walkedAt = Math.min(walkedAt, model.requests.length)
      store.save(watermark)
    },
  }
  const signal = model.endAt(worldMs + 30 * minuteMs)
  await untilOver(signal, async () => {
    for (const kill of [...kills, Infinity]) {
      let taken = 0
      const client = clientOf(model)
      const more = moreOf(() => copy.projects.keys(), client)
      const options = { ...more, pageSize, store: saving, onOutage: more.from ? onBreak : onOutage, signal }
      for await (const change of client.mirror(options)) {
        // Killed before this change is put into the copy.
        if (taken++ >= kill) break
        copy.apply(change)
      }
    }
  })
  const walks = model.requests
    .slice(walkedAt)
    .filter(path => path.startsWith('/projects') && !path.includes('updated_since'))
  return { copy: copy.projects, walks }
}

/** Ids that a reconciliation removes and does not add again. If the pages moved too often, it starts again. */
async function removedBy(model: ServiceModel, held: Set<string>, pageSize: number): Promise<string[]> {
  const removed = new Set<string>()
  for (let tries = 0; tries < 10; tries++) {
    try {
      for await (const change of clientOf(model).reconcile({ held, pageSize })) {
        if (change.type === 'removed') removed.add(change.id)
        else removed.delete(change.project.id)
      }
      return [...removed]
    } catch (error) {
      onOutage(error as ClientError)
      await model.sleep(minuteMs)
    }
  }
  throw new Error('the pages changed during every reconciliation')
}
