/** What a fault observes while it runs. */
import { expect, vi } from 'vitest'
import { defaultDatabases, generationOf, readCurrent } from '../../services/tables/generations.ts'
import type { Databases, Tables } from '../../services/tables/port.ts'
import type { Asked } from '../support/faults/api-client.ts'
import { column } from '../support/projector/fold-records.ts'

const { views } = defaultDatabases
const holdsMsMax = 180_000

// Most of what is polled is a query of ClickHouse. Without a pause, polling would take the CPU from what it waits for.
const pauseMs = 100

/** Polls until a condition holds. Throws after three minutes. */
export async function until(holds: () => Promise<boolean> | boolean, interval = pauseMs): Promise<void> {
  await vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: holdsMsMax, interval })
}

/** Polls the API with one key until it answers with this status, so rarely that no limit is reached. */
export function untilStatus(ask: () => Promise<Asked | undefined>, status: number): Promise<void> {
  return until(async () => (await ask())?.response.status === status, 1_000)
}

/** How many batches were ever written. */
export async function batchesIn(tables: Tables, { ledger }: Pick<Databases, 'ledger'>): Promise<number> {
  return numberOf(tables, `SELECT count() AS value FROM ${ledger}.batch_log`)
}

/** The highest epoch that a fold worker has taken. */
export async function latestEpoch(tables: Tables): Promise<number> {
  const { ledger } = await currentOf(tables)
  return numberOf(tables, `SELECT max(epoch) AS value FROM ${ledger}.fold_epochs`)
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

/** The title that the campaign is shown with; `undefined` if it is not shown. */
export async function shownTitle(tables: Tables, id: string): Promise<unknown> {
  const [title] = await column(
    tables,
    `SELECT title AS value FROM ${views}.campaigns WHERE campaign_id = '${id}'`,
  )
  return title
}

async function numberOf(tables: Tables, query: string): Promise<number> {
  const [value] = await column(tables, query)
  return Number(value)
}
