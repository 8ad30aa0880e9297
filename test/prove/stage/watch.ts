/** What a fault observes while it runs. */
import { setTimeout as delay } from 'node:timers/promises'
import { within } from '../../../services/runtime/async/sleep.ts'
import { defaultDatabases, generationOf, readCurrent } from '../../../services/tables/generations.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { Place } from '../../support/faults/places.ts'
import { column } from '../../support/projector/fold-records.ts'
import { now, type Recorder } from './recorder.ts'

export const holdsMsMax = 180_000
const opsMsMax = 60_000

// Most of what is polled is a query of ClickHouse. Without a pause, polling would take the CPU from what it waits for.
const pauseMs = 100
const readyEveryMs = 250

/** Polls until a condition holds. Throws after three minutes, with the last error. */
export async function until(holds: () => Promise<boolean> | boolean, interval = pauseMs): Promise<void> {
  const deadline = performance.now() + holdsMsMax
  let failure: unknown
  do {
    try {
      // What it asks may never answer.
      if (await within(holdsMsMax, Promise.resolve(holds()))) return
      failure = undefined
    } catch (error) {
      failure = error
    }
    await delay(interval)
  } while (performance.now() < deadline)
  throw new Error(`after ${holdsMsMax / 1_000} s it still does not hold: ${holds}`, { cause: failure })
}

/** Runs this beside all else. Returns what ends it, which rejects if it had failed. */
export function inBackground(work: (signal: AbortSignal) => Promise<unknown>): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const failed = work(signal).then(
    () => undefined,
    error => (signal.aborted ? undefined : { error }),
  )
  return async () => {
    stopping.abort()
    const failure = await failed
    if (failure) throw failure.error
  }
}

/** How many batches were ever written. */
export async function batchesIn(tables: Tables, { ledger }: Pick<Databases, 'ledger'>): Promise<number> {
  return numberOf(tables, `SELECT count() AS value FROM ${ledger}.batch_log`)
}

/** The databases of the generation that is current now. */
export async function currentOf(tables: Tables): Promise<Databases> {
  return generationOf(defaultDatabases, await readCurrent(tables, defaultDatabases.base))
}

/**
 * Resolves when, from now on, a batch was written and a fold was finished in the current generation. `log` has the generation log: on a
 * cluster, one server has it for all shards.
 */
export async function untilItMoves(tables: Tables, log: Tables = tables): Promise<void> {
  const current = await currentOf(log)
  const { ledger } = current
  const folds = () =>
    numberOf(tables, `SELECT max(fold_id) AS value FROM ${ledger}.fold_progress WHERE is_folded`)
  const [written, folded] = [await batchesIn(tables, current), await folds()]
  await until(async () => (await batchesIn(tables, current)) > written && (await folds()) > folded)
}

async function numberOf(tables: Tables, query: string): Promise<number> {
  const [value] = await column(tables, query)
  return Number(value)
}

/** What the process answers on its ops port. */
export async function askOps(place: Place, path: '/readyz' | '/metrics') {
  const { opsUrl } = await place.ready()
  const response = await fetch(`${opsUrl}${path}`, { signal: AbortSignal.timeout(opsMsMax) })
  return { isOk: response.ok, text: await response.text() }
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
    let outages = 0
    let sharedAt = now()
    while (!signal.aborted) {
      const sentAt = now()
      const told = await askOps(place, '/readyz').catch(() => undefined)
      const outagesNow = place.output().split('Redis is unavailable').length - 1
      if (told) {
        recorder.add({ kind: 'ready', process, sentAt, receivedAt: now(), isReady: told.isOk })
        const isShared = told.text.includes('limits are shared') && outagesNow === outages
        if (isShared) sharedAt = sentAt
        else recorder.add({ kind: 'disturbed', what: 'limits', from: sharedAt, to: now() })
      }
      outages = outagesNow
      await delay(readyEveryMs)
    }
  })
  await Promise.all(running)
}

/** Notes which assertions of its own a process has found broken: the metric if it runs, and the log of all that were in its place. */
export async function noteBroken(process: string, place: Place, recorder: Recorder): Promise<void> {
  const logged = place.output().matchAll(/"invariant":"([^"]+)"/g)
  const metrics = place.hasEnded() ? '' : (await askOps(place, '/metrics')).text
  const counted = metrics.matchAll(/^pledgeview_invariants_broken_total\{name="([^"]+)"\} [1-9]/gm)
  const names = new Set([...logged, ...counted].map(([, name = '']) => name))
  recorder.add({ kind: 'broken', process, names: [...names] })
}
