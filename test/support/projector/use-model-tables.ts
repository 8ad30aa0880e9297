/** The read model of the tests of a file, or of a `describe`. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { FoldWorker } from '../../../services/projector/fold/fold-worker.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { stampsById } from './fold-records.ts'
import {
  createIngest,
  createTestFoldWorker,
  type ModelTables,
  openModelTables,
  type Reading,
  readViews,
} from './model-tables.ts'

/** Opens a ClickHouse before the tests, and closes it after them. What it returns can be used inside hooks and tests. */
export function useModelTables(): ModelTables {
  let opened: ModelTables
  beforeAll(async () => {
    opened = await openModelTables()
  })
  afterAll(() => opened?.dispose())

  return {
    get tables() {
      return opened.tables
    },
    get clickHouse() {
      return opened.clickHouse
    },
    freshDatabases: () => opened.freshDatabases(),
    giveBack: databases => opened.giveBack(databases),
    dispose: () => opened.dispose(),
  }
}

/** How events reach the fold, which promises the same result for every delivery. Each batch is folded before the next one arrives. */
export interface Delivery {
  /** Events of one batch. Default: all of them. */
  batchSize?: number
  /** That of the platform, from the first delivery on. Default: USD. */
  currency?: string
}

/** The tables of a file, with empty databases for each test. */
export interface FreshModel {
  tables: Tables
  databases: Databases
  /** Writes one batch, and folds nothing. */
  ingest(events: readonly ChangeEvent[]): Promise<void>
  /** Writes batches, and folds each with a worker that leads since the first call. */
  project(events: readonly ChangeEvent[], delivery?: Delivery): Promise<void>
  /** When each public campaign last changed, in Unix ms by its id. */
  stamps(): Promise<Record<string, number>>
  /** What the views say. */
  views(): Promise<Reading>
}

export function useFreshModel(): FreshModel {
  const model = useModelTables()
  let databases: Databases
  let ingest: FreshModel['ingest']
  let leader: FoldWorker | undefined
  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
    leader = undefined
    return () => model.giveBack(databases)
  })

  return {
    get tables() {
      return model.tables
    },
    get databases() {
      return databases
    },
    ingest: events => ingest(events),
    async project(events, { batchSize = events.length, currency = 'USD' } = {}) {
      const config = { PLEDGEVIEW_PLATFORM_CURRENCY: currency }
      if (!leader) {
        leader = createTestFoldWorker(model.tables, databases, config).foldWorker
        await leader.acquireLeadership()
      }
      for (let from = 0; from < events.length; from += batchSize) {
        await ingest(events.slice(from, from + batchSize))
        await leader.fold()
      }
    },
    stamps: () => stampsById({ tables: model.tables, databases }),
    views: () => readViews(model.tables, databases),
  }
}
