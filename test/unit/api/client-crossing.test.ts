/** Edge cases of the client that a random test rarely reaches. Each case is written by hand. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { createClient, MirrorOptions, Project } from '../../../contracts/api/client.ts'
import { clients } from '../../clients/python-bridge.ts'
import { needs } from '../../support/runner/requirements.ts'
import {
  baseUrl,
  type CampaignState,
  createServiceModel,
  type Happening,
  type ModelSettings,
  type ServiceModel,
  startsAt,
} from './client-model.ts'
import { clientOf, minuteMs, onOutage, playedBy, untilOver } from './client-worlds.ts'

const before = -600_000

function state(launchDay: number, title = 'a'): CampaignState {
  return { title, category: 'Games', launchDay }
}

/** All public from the start; the first is the newest. */
function founded(...ids: string[]): Happening[] {
  return ids.map((id, place) => ({ at: before, visibleAfterMs: 0, id, state: state(100 - 10 * place) }))
}

function happening(at: number, id: string, state: CampaignState | null, visibleAfterMs = 0): Happening {
  return { at, visibleAfterMs, id, state }
}

/** A model of the service and a client. Call first in a `describe`. */
function played({ create, needs: requirement }: (typeof clients)[number]) {
  beforeEach(context => needs(context, requirement))
  return (settings: ModelSettings) => {
    const model = createServiceModel(settings)
    const { now, sleep, fetch } = model
    const client = create({ baseUrl, key: 'k', secret: 's', runtime: { now, sleep, random: () => 0, fetch } })
    return { model, client }
  }
}

async function reconciled(
  client: ReturnType<typeof createClient>,
  held: string[],
  pageSize = 2,
): Promise<{ upserts: Map<string, Project>; removed: string[] }> {
  const upserts = new Map<string, Project>()
  const removed: string[] = []
  for await (const change of client.reconcile({ held, pageSize })) {
    if (change.type === 'upsert') upserts.set(change.project.id, change.project)
    else removed.push(change.id)
  }
  return { upserts, removed }
}

describe.each(clients)('a walk that crosses from one snapshot to the next, in $language', client => {
  const world = played(client)

  const seen = ['s1', 's2', 's3', 's4', 's5', 's6', 's7', 's8']
  const unseen = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6', 'u7', 'u8']
  it('gives up after a bounded number of pages if every page comes from a different snapshot', async () => {
    const { client, model } = world({
      happenings: founded(...seen, ...unseen),
      latencyMs: () => 1000,
      evicts: () => true,
    })
    await expect(reconciled(client, [])).rejects.toMatchObject({ code: 'unstable_walk' })
    expect(model.requests.length).toBeLessThan(200)
  })
})

describe.each(clients)('a mirror, in $language', client => {
  const world = played(client)

  it('refuses a store that another iteration uses, until that iteration has ended', async () => {
    const { client } = world({ happenings: founded('c1') })
    const store = memoryStore()
    const first = client.mirror({ store })
    await first.next()
    await expect(client.reconcile({ held: [], store }).next()).rejects.toMatchObject({ code: 'store_in_use' })
    await first.return(undefined as never)
    await expect(client.reconcile({ held: [], store }).next()).resolves.toMatchObject({ done: false })
  })

  it('does not report an unchanged campaign twice', async () => {
    // The first poll finds it again, because a watermark lags behind.
    const { client, model } = world({ happenings: [happening(-1000, 'c1', state(100))] })
    const signal = model.endAt(300_000)
    let count = 0
    const mirror = async () => {
      for await (const _ of client.mirror({ signal })) count++
    }
    await expect(mirror()).rejects.toThrow('the time is over')
    expect(count).toBe(1)
  })
})

describe.each(clients)('reconcile, in $language', client => {
  const world = played(client)

  it('does not remove a campaign that moved to a page that was read already', async () => {
    const { client } = world({
      happenings: [...founded('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), happening(3600, 'h', state(200))],
      latencyMs: () => 1000,
      evicts: request => request === 4,
    })
    const { upserts, removed } = await reconciled(client, ['a', 'h'], 1)
    expect(removed).toEqual([])
    expect(upserts.has('h')).toBe(true)
  })
})

function memoryStore() {
  const saved: string[] = []
  return { saved, load: () => saved.at(-1) ?? null, save: (watermark: string) => void saved.push(watermark) }
}

describe.each(clients)('a mirror, in $language', client => {
  playedBy(client)

  it('is told of more removals than can be read from one snapshot, and of the changes after them', async () => {
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
    const store = { load: () => new Date(startsAt).toISOString(), save: () => {} }
    expect(await told(model, model.now, { store }, 20 * minuteMs)).toEqual([...gone, 'kept'])
  })

  it('goes on in time if the clock of its consumer is set back', async () => {
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
