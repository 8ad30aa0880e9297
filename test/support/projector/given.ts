/**
 * Specifications of the fold: `given([...]).when([...]).then(...)`. Each `given` has a read model of its own, in a real
 * ClickHouse. How the events are delivered is a parameter, because the fold promises the same result for every delivery.
 */
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { readModelOf } from '../events/model.ts'
import { stampsById } from './fold-records.ts'
import {
  createIngest,
  createTestFoldWorker,
  expectedReading,
  type ModelTables,
  openModelTables,
  type Reading,
  readViews,
} from './model-tables.ts'

/** How events reach the fold. Each batch is folded before the next one arrives. */
export interface Delivery {
  /** How often all of the events are delivered. Default: once. */
  times?: number
  /** Events of one batch. Default: each time all of them in one batch. */
  batchSize?: number
}

/** The read model of one `given`, with one fold worker that leads. */
export interface Projected {
  tables: Tables
  databases: Databases
  /** Delivers more events, and folds them. */
  project(events: readonly ChangeEvent[], delivery?: Delivery): Promise<void>
  /** When each public campaign last changed, in Unix ms by its id. */
  stamps(): Promise<Record<string, number>>
  /** What the views say. */
  views(): Promise<Reading>
}

/** A promise of the read model, so `then` and `await` are those of every promise. */
export interface Scenario extends Promise<Projected> {
  /** Delivers more events, and folds them, after everything before has been folded. */
  when(events: readonly ChangeEvent[], delivery?: Delivery): Scenario
}

export type Given = (events: readonly ChangeEvent[], options?: Delivery & { currency?: string }) => Scenario

/** Opens a ClickHouse for the tests of the `describe` that calls it. Every `given` in them starts with empty tables. */
export function openGiven(): Given {
  let model: ModelTables
  beforeAll(async () => {
    model = await openModelTables()
  })
  afterAll(() => model.dispose())

  return (events, { currency = 'USD', ...delivery } = {}) =>
    scenario(emptyModel(model, currency)).when(events, delivery)
}

/** A check for `then`: the views say what the plain model says of these events. */
export function viewsShow(events: readonly ChangeEvent[]): (projected: Projected) => Promise<void> {
  return async projected => {
    expect(await projected.views()).toEqual(expectedReading(readModelOf(events)))
  }
}

function scenario(earlier: Promise<Projected>): Scenario {
  return Object.assign(earlier, {
    when: (events: readonly ChangeEvent[], delivery?: Delivery) =>
      scenario(
        earlier.then(async projected => {
          await projected.project(events, delivery)
          return projected
        }),
      ),
  })
}

async function emptyModel(model: ModelTables, currency: string): Promise<Projected> {
  const { tables } = model
  const databases = await model.freshDatabases()
  onTestFinished(() => model.giveBack(databases))
  const ingest = createIngest(tables, databases)
  const { foldWorker } = createTestFoldWorker(tables, databases, {
    PLEDGEVIEW_PLATFORM_CURRENCY: currency,
  })
  await foldWorker.acquireLeadership()
  return {
    tables,
    databases,
    async project(events, delivery) {
      for (const batch of batches(events, delivery)) {
        await ingest(batch)
        await foldWorker.fold()
      }
    },
    stamps: () => stampsById({ tables, databases }),
    views: () => readViews(tables, databases),
  }
}

function* batches(events: readonly ChangeEvent[], delivery: Delivery = {}): Generator<ChangeEvent[]> {
  const { times = 1, batchSize = events.length } = delivery
  const delivered = Array.from({ length: times }, () => events).flat()
  for (let from = 0; from < delivered.length; from += batchSize) {
    yield delivered.slice(from, from + batchSize)
  }
}
