/** Arbitrary worlds for the tests of mirrors, and the copies of their consumers. */
import fc from 'fast-check'
import { beforeEach, expect } from 'vitest'
import {
  type Change,
  type Client,
  type ClientError,
  createClient,
  type WatermarkStore,
} from '../../../contracts/api/client.ts'
import type { Project, ProjectDetail } from '../../../contracts/api/schemas.ts'
import type { clients } from '../../clients/python-bridge.ts'
import { needs } from '../../support/runner/requirements.ts'
import {
  baseUrl,
  createServiceModel,
  type Happening,
  horizonMs,
  type ModelSettings,
  type ServiceModel,
  type Standstill,
} from './client-model.ts'

export const minuteMs = 60_000
export const worldMs = 20 * minuteMs

export interface World {
  happenings: Happening[]
  standstills: Standstill[]
  latenciesMs: number[]
  evictions: number[]
  /** Out of ten requests. */
  processes: number[]
  /** By request number. */
  faults: [number, 'network' | 'internal_error'][]
  pageSize: number
}

const campaign = fc.record({
  title: fc.constantFrom('a', 'b', 'c'),
  category: fc.constantFrom('Games', 'Film'),
  launchDay: fc.nat(20),
})
const id = fc.nat(39).map(number => `c${number}`)
const founding = fc
  .uniqueArray(id, { minLength: 10, maxLength: 40 })
  .chain(ids =>
    fc.tuple(...ids.map(id => campaign.map(state => ({ at: -minuteMs, visibleAfterMs: 0, id, state })))),
  )
const change = fc.record({
  // Some stamps are full seconds, so that stamps equal each other and the watermarks.
  at: fc.oneof(
    fc.nat(worldMs),
    fc.nat(worldMs / 5000).map(step => step * 5000),
  ),
  visibleAfterMs: fc.nat(horizonMs),
  id,
  state: fc.option(campaign, { freq: 3 }),
})
export const world: fc.Arbitrary<World> = fc.record({
  happenings: fc
    .tuple(founding, fc.array(change, { minLength: 20, maxLength: 120 }))
    .map(([first, then]) => inOrder([...first, ...then])),
  latenciesMs: fc.array(fc.oneof(fc.nat(200), fc.nat(3000)), { minLength: 1, maxLength: 20 }),
  evictions: fc.array(fc.nat(300), { maxLength: 20 }),
  processes: fc.array(fc.nat(1), { minLength: 1, maxLength: 10 }),
  faults: fc.array(fc.tuple(fc.nat(300), fc.constantFrom('network' as const, 'internal_error' as const)), {
    maxLength: 30,
  }),
  pageSize: fc.integer({ min: 1, max: 7 }),
  standstills: fc.array(fc.record({ at: fc.nat(worldMs), forMs: fc.nat(3 * minuteMs) }), { maxLength: 8 }),
})

// One writer writes the changes of a campaign: each has a later stamp than the one before, and becomes visible after it.
function inOrder(happenings: Happening[]): Happening[] {
  const lastOf = new Map<string, { at: number; visibleAt: number }>()
  return happenings
    .toSorted((a, b) => a.at - b.at)
    .map(happening => {
      const last = lastOf.get(happening.id) ?? { at: -Infinity, visibleAt: -Infinity }
      const at = Math.max(happening.at, last.at + 1)
      const visibleAt = Math.max(at + happening.visibleAfterMs, last.visibleAt)
      lastOf.set(happening.id, { at, visibleAt })
      return { ...happening, at, visibleAfterMs: visibleAt - at }
    })
}

export function modelOf(
  { happenings, standstills, latenciesMs, evictions, processes, faults }: World,
  settings?: Partial<ModelSettings>,
): ServiceModel {
  const faultOf = new Map(faults)
  return createServiceModel({
    happenings,
    standstills,
    latencyMs: request => latenciesMs[request % latenciesMs.length] ?? 0,
    evicts: request => evictions.includes(request),
    process: request => processes[Math.floor(request / 10) % processes.length] ?? 0,
    fault: request => faultOf.get(request),
    ...settings,
  })
}

/** Which client `clientOf` creates in the tests that follow. */
let create: typeof createClient = createClient

/** Call first in a `describe`. Returns how many worlds of so many are played. */
export function playedBy(client: (typeof clients)[number]): (count: number) => number {
  beforeEach(context => {
    needs(context, client.needs)
    create = client.create
  })
  return client.runs
}

export function clientOf(model: ServiceModel): Client {
  const { fetch, now, sleep } = model
  return create({
    baseUrl,
    key: 'k',
    secret: 's',
    attemptsMax: 10,
    retryMsMax: 60 * minuteMs,
    runtime: { fetch, now, sleep, random: () => 0.5 },
  })
}

/** The copy of a consumer. */
export function createCopy() {
  const projects = new Map<string, Project>()
  return {
    projects,
    apply(change: Change): void {
      if (change.type === 'upsert') {
        // What only the detail has is not compared.
        const { description: _, risks: __, rewards: ___, ...project } = change.project as ProjectDetail
        projects.set(project.id, project)
      } else projects.delete(change.id)
    },
  }
}

export function memoryStore(watermark: string | null = null): WatermarkStore & { watermark: string | null } {
  const store = {
    watermark,
    load: () => store.watermark,
    save(given: string) {
      store.watermark = given
    },
  }
  return store
}

/** Two processes without shared snapshots may move the pages too often for a walk. No other failure is allowed. */
export function onOutage(error: ClientError): void {
  expect(error.code).toBe('unstable_walk')
}

/** Runs until the time is over. That is the only error allowed. */
export async function untilOver(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  await expect(work()).rejects.toThrow('the time is over')
  expect(signal.aborted).toBe(true)
}

/** Ids whose copy is missing or differs from what a reader sees, and ids that a reader does not see. */
export function differences(model: ServiceModel, copy: Map<string, Project>) {
  const text = (project: Project | undefined) => JSON.stringify({ ...project, days_remaining: 0 })
  const current = model.publicCampaigns()
  return {
    lost: [...current].filter(([id, project]) => text(copy.get(id)) !== text(project)).map(([id]) => id),
    gone: [...copy.keys()].filter(id => !current.has(id)),
  }
}
