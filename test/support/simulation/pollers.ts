/** The consumers of a world. Each has a copy; some use the API's client, and some the documented loop. */

import type { RemovalListBody } from '../../../contracts/api/client/bodies.ts'
import { type Change, createClient, type WatermarkStore } from '../../../contracts/api/client.ts'
import { basePath } from '../../../contracts/api/conventions.ts'
import type { Project } from '../../../contracts/api/schemas.ts'
import { type LoopSettings, type Place, poll } from '../../simulation/documented-loop.ts'
import type { Random } from '../runner/random.ts'
import type { PollerPlan } from './scenario.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface PollerDependencies {
  plan: PollerPlan
  time: Pick<VirtualTime, 'now' | 'sleep'>
  startsAt: number
  random: Random
  /** GET of a path below the base URL, over the network. Rejects with the signal's reason when it aborts. */
  get: (path: string, headers: Record<string, string>, signal: AbortSignal | undefined) => Promise<Response>
  headers: Record<string, string>
  /** From this time on nothing changes any more: infinite until it is known. Unix milliseconds. */
  quietAt: () => number
  onCrossing?: LoopSettings['onCrossing']
  /** How often it walks everything, if the plan says so. Default: each 15 seconds. */
  reconcileEveryMs?: number
}

export interface Poller {
  /** Polls until a walk has everything up to `quietAt`, and what was gone before the first one is removed. */
  follow(): Promise<void>
  /** Compares the copy with the service, and repairs it. Returns the ids of what was wrong, as far as it can tell. */
  check(): Promise<string[]>
  copy(): ReadonlyMap<string, Project>
}

/** Runs the work, from the time of the plan on. If the plan says so, it is stopped at any point, and begins again from what is stored. */
async function withRestart(
  { plan, time, startsAt }: PollerDependencies,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { restartsAt } = plan
  await time.sleep(startsAt + plan.startsAt - time.now())
  if (restartsAt === undefined) return work(new AbortController().signal)
  const stop = new AbortController()
  const stopped = new Error('the consumer was stopped')
  const alarm = new AbortController()
  time.sleep(startsAt + restartsAt - time.now(), alarm.signal).then(
    () => stop.abort(stopped),
    () => {},
  )
  try {
    await work(stop.signal)
    alarm.abort()
  } catch (error) {
    if (error !== stopped) throw error
    await work(new AbortController().signal)
  }
}

export function createLoopPoller(dependencies: PollerDependencies): Poller {
  const { plan, time, startsAt, get, headers, quietAt, onCrossing } = dependencies
  const { reconcileEveryMs = 15_000 } = dependencies
  const { pageSize, intervalMs } = plan
  let place: Place = { copy: new Map(), since: null }
  let reconciledAt = startsAt + plan.startsAt
  // As the guide says: after a restore, removals may begin later than its watermark. What is not in the list is gone.
  let isUntold = false
  const isThere = () => !isUntold && place.isClean === true && Date.parse(place.since ?? '') >= quietAt()

  const settingsFor = (signal?: AbortSignal): LoopSettings => ({
    pageSize,
    async get(path) {
      const response = await get(path, headers, signal)
      if (!response.ok || !path.startsWith('/removals')) return response
      const { kept_since } = (await response.clone().json()) as RemovalListBody
      isUntold ||= plan.reconciles && kept_since > (place.since ?? kept_since)
      return response
    },
    wait: ms => time.sleep(ms, signal),
    ...(onCrossing && { onCrossing }),
  })

  async function walkAnew(signal?: AbortSignal): Promise<void> {
    const fresh: Place = { copy: new Map(), since: null }
    for (;;) {
      await poll(fresh, settingsFor(signal))
      if (fresh.since !== null) break
      await time.sleep(intervalMs, signal)
    }
    place = fresh
    isUntold = false
    reconciledAt = time.now()
  }

  async function run(signal?: AbortSignal): Promise<void> {
    while (!isThere()) {
      const isDue = plan.reconciles && time.now() - reconciledAt > reconcileEveryMs
      if (isDue || isUntold) await walkAnew(signal)
      else await poll(place, settingsFor(signal))
      if (!isThere()) await time.sleep(intervalMs, signal)
    }
  }

  return {
    copy: () => place.copy,
    follow: () => withRestart(dependencies, run),
    async check() {
      await walkAnew()
      await run()
      return []
    },
  }
}

export function createClientPoller(dependencies: PollerDependencies): Poller {
  const { plan, time, random, get, headers, quietAt } = dependencies
  const { pageSize, intervalMs } = plan
  const copy = new Map<string, Project>()
  let watermark: string | null = null
  let onThere: (() => void) | undefined
  // The first walk asks for no removals: the poll after it does.
  let savesThere = 0
  const store: WatermarkStore = {
    load: () => watermark,
    save(next) {
      watermark = next
      if (Date.parse(next) >= quietAt() && ++savesThere > 1) onThere?.()
    },
  }
  const [key = '', secret = ''] = (headers.authorization ?? '').replace('Bearer ', '').split(':')
  const client = createClient({
    baseUrl: `https://api.example${basePath}`,
    key,
    secret,
    runtime: {
      now: time.now,
      random,
      sleep: time.sleep,
      fetch: (url, init) =>
        get(
          String(url).split(basePath)[1] ?? '',
          init?.headers as Record<string, string>,
          init?.signal ?? undefined,
        ),
    },
  })

  function apply(change: Change): void {
    if (change.type === 'upsert') copy.set(change.project.id, change.project)
    else copy.delete(change.id)
  }

  /** Mirrors until a walk has everything, or the signal aborts. */
  async function mirror(until?: AbortSignal): Promise<void> {
    const there = new AbortController()
    onThere = () => there.abort(there)
    const signal = until ? AbortSignal.any([there.signal, until]) : there.signal
    const { reconcileEveryMs: everyMs = 15_000 } = dependencies
    const reconcile = { everyMs, held: () => copy.keys() }
    const changes = client.mirror({
      store,
      pageSize,
      intervalMs,
      signal,
      ...(plan.reconciles && { reconcile }),
      onOutage: () => {},
    })
    try {
      for await (const change of changes) apply(change)
    } catch (error) {
      if (error !== there) throw error
    }
  }

  return {
    copy: () => copy,
    follow: () => withRestart(dependencies, mirror),
    async check() {
      const { lacking, leftOver, stale } = await client.verify({
        held: () => copy.values(),
        apply,
        store,
        pageSize,
      })
      return [...lacking, ...leftOver, ...stale]
    },
  }
}
