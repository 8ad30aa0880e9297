/** Edge cases of the client that a random test rarely reaches. Each case is written by hand. */
import { describe, expect, it } from 'vitest'
import { createClient, type Project } from '../../../contracts/api/client.ts'
import {
  baseUrl,
  type CampaignState,
  createServiceModel,
  type Happening,
  type ModelSettings,
  type ServiceModel,
} from './client-model.ts'

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

/** A model of the service and a client. `onRequest` runs before each request of the client and receives its number. */
function world(
  settings: ModelSettings,
  onRequest?: (number: number, model: ServiceModel) => Promise<unknown> | undefined,
) {
  const model = createServiceModel(settings)
  const { now, sleep } = model
  let requests = 0
  const client = createClient({
    baseUrl,
    key: 'k',
    secret: 's',
    runtime: {
      now,
      sleep,
      random: () => 0,
      async fetch(input, init) {
        await onRequest?.(requests++, model)
        return model.fetch(input, init)
      },
    },
  })
  return { model, client }
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

describe('a walk that crosses from one snapshot to the next', () => {
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

describe('a mirror', () => {
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

describe('reconcile', () => {
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
