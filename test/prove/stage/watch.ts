/** What a fault observes while it runs. */
import { setTimeout as delay } from 'node:timers/promises'
import { topics } from '../../../contracts/events/event.ts'
import { within } from '../../../services/runtime/async/sleep.ts'
import { defaultDatabases, generationOf, readCurrent } from '../../../services/tables/generation-log.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { Place } from '../../support/faults/places.ts'
import { kafkaAt, withAdmin } from '../../support/kafka/topics.ts'
import { column } from '../../support/projector/fold-records.ts'
import { now, type Recorder } from './recorder.ts'

export const holdsMsMax = 180_000
const opsMsMax = 60_000

// Most of what is polled is a query of ClickHouse. Without a pause, polling would take the CPU from what it waits for.
const pauseMs = 100
const readyEveryMs = 250
const groupId = 'pledgeview-projector'

/** Polls until a condition holds. Throws after three minutes, with the last error. */
export async function until(holds: () => Promise<boolean> | boolean, interval = pauseMs): Promise<void> {
  const deadline = performance.now() + holdsMsMax
  let cause: unknown
  do {
    try {
      // What it asks may never answer.
      if (await within(holdsMsMax, Promise.resolve(holds()))) return
      cause = undefined
    } catch (error) {
      cause = error
    }
    await delay(interval)
  } while (performance.now() < deadline)
  throw new Error(`after ${holdsMsMax / 1_000} s it still does not hold: ${holds}`, { cause })
}

/** How many batches were ever written. */
export const batchesIn = (tables: Tables, { ledger }: Databases): Promise<number> =>
  numberOf(tables, `SELECT count() AS value FROM ${ledger}.batch_log`)

/** The last fold that was finished. */
export const foldsIn = (tables: Tables, { ledger }: Databases): Promise<number> =>
  numberOf(tables, `SELECT max(fold_id) AS value FROM ${ledger}.fold_progress`)

async function numberOf(tables: Tables, query: string): Promise<number> {
  const [value] = await column(tables, query)
  return Number(value)
}

/** The databases of the generation that is current now. */
export async function currentOf(tables: Tables): Promise<Databases> {
  return generationOf(defaultDatabases, await readCurrent(tables, defaultDatabases.base))
}

/** What the process answers on its ops port. `isOk`: it is ready, lacks nothing that it could do without, and its keys are fresh. */
export async function askOps(place: Place, path: '/readyz' | '/metrics') {
  const { opsUrl } = await place.ready()
  const response = await fetch(`${opsUrl}${path}`, { signal: AbortSignal.timeout(opsMsMax) })
  const text = await response.text()
  return { isOk: response.ok && !/"ok":false|not read recently/.test(text), text }
}

/** Resolves when the process says that it is ready. */
export function untilReady(place: Place): Promise<void> {
  return until(async () => (await askOps(place, '/readyz')).isOk)
}

/** Notes what each query process says of itself: whether it is ready, and since when it does not share its limits. */
export async function watchReady(
  queries: readonly Place[],
  recorder: Recorder,
  signal: AbortSignal,
): Promise<void> {
  const running = queries.map(async (place, process) => {
    let [sharedAt, outages] = [now(), 0]
    while (!signal.aborted) {
      const sentAt = now()
      const told = await askOps(place, '/readyz').catch(() => undefined)
      if (told) {
        const before = outages
        outages = place.output().split('Redis is unavailable').length - 1
        recorder.add({ kind: 'ready', process, sentAt, receivedAt: now(), isReady: told.isOk })
        if (told.text.includes('limits are shared') && outages === before) sharedAt = sentAt
        else recorder.add({ kind: 'disturbed', what: 'limits', from: sharedAt, to: now() })
      }
      await delay(readyEveryMs)
    }
  })
  await Promise.all(running)
}

/** Which assertions of its own a process has found broken: the metric if it runs, and the log of all that were in its place. */
export async function brokenIn(place: Place): Promise<string[]> {
  const logged = place.output().matchAll(/"invariant":"([^"]+)"/g)
  const metrics = place.hasEnded() ? '' : (await askOps(place, '/metrics')).text
  const counted = metrics.matchAll(/^pledgeview_invariants_broken_total\{name="([^"]+)"\} [1-9]/gm)
  return [...new Set([...logged, ...counted].map(([, name = '']) => name))]
}

/** The group's positions and the ends of the log, by topic and partition. A partition without records has no position. */
export async function positionsAndEnds(
  address: string,
): Promise<{ positions: Record<string, number>; ends: Record<string, number> }> {
  return withAdmin(kafkaAt(address), async admin => {
    const positions: Record<string, number> = {}
    const ends: Record<string, number> = {}
    for (const topic of topics) {
      for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
        if (Number(high) > 0) ends[`${topic}/${partition}`] = Number(high)
      }
    }
    for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics: [...topics] })) {
      for (const { partition, offset } of partitions) {
        if (Number(offset) > 0) positions[`${topic}/${partition}`] = Number(offset)
      }
    }
    return { positions, ends }
  })
}
