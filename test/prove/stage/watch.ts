/** What a fault observes while it runs. */
import { setTimeout as delay } from 'node:timers/promises'
import { within } from '../../../services/runtime/async/sleep.ts'
import { defaultDatabases, generationOf, readCurrent } from '../../../services/tables/generations.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import type { Place } from '../../support/faults/places.ts'
import { column } from '../../support/projector/fold-records.ts'
import { now, type Recorder } from './recorder.ts'

const holdsMsMax = 180_000

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

/** Resolves when the process says that it is ready. */
export function untilReady(place: Place | undefined): Promise<void> {
  return until(async () => place !== undefined && (await fetch(`${(await place.ready()).opsUrl}/readyz`)).ok)
}

/** What a process says on its ops port. */
export async function metricsOf(place: Place): Promise<string> {
  const { opsUrl } = await place.ready()
  return (await fetch(`${opsUrl}/metrics`)).text()
}

async function numberOf(tables: Tables, query: string): Promise<number> {
  const [value] = await column(tables, query)
  return Number(value)
}

/** Notes what each query process says of itself: whether it is ready, and since when it does not share its limits. */
export function watchReady(queries: readonly Place[], recorder: Recorder): () => Promise<void> {
  const stopping = new AbortController()
  const running = queries.map(async (place, process) => {
    let outages = 0
    let sharedAt = now()
    while (!stopping.signal.aborted) {
      const sentAt = now()
      const text = await place
        .ready()
        .then(({ opsUrl }) => fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(5_000) }))
        .then(async response => ({ isReady: response.status === 200, said: await response.text() }))
        .catch(() => undefined)
      const told = place.output().split('Redis is unavailable').length - 1
      if (text) {
        recorder.add({ kind: 'ready', process, sentAt, receivedAt: now(), isReady: text.isReady })
        const isShared = text.said.includes('limits are shared') && told === outages
        if (isShared) sharedAt = sentAt
        else recorder.add({ kind: 'disturbed', what: 'limits', from: sharedAt, to: now() })
      }
      outages = told
      await delay(readyEveryMs)
    }
  })
  return async () => {
    stopping.abort()
    await Promise.all(running)
  }
}
