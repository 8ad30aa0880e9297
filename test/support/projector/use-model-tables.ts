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
  readViews,
} from './model-tables.ts'

/** Opens a ClickHouse before the tests, and closes it after them. What it returns can be used inside hooks and tests. */
export function useModelTables(): ModelTables {
  const model = {} as ModelTables
  beforeAll(async () => {
    Object.assign(model, await openModelTables())
  })
  afterAll(() => model.dispose?.())
  return model
}

/** The tables of a file, with empty databases for each test. */
export function useFreshModel() {
  const model = useModelTables()
  let ingest: ReturnType<typeof createIngest>
  let leader: FoldWorker | undefined
  const fresh = {
    tables: undefined as unknown as Tables,
    databases: undefined as unknown as Databases,
    /** Writes one batch, and folds nothing. */
    ingest: (events: readonly ChangeEvent[]) => ingest(events),
    /**
     * Writes batches, and folds each before the next one arrives, with a worker that leads since the first call. The fold promises the same
     * result for every size. `currency`: that of the platform, from the first call on.
     */
    async project(events: readonly ChangeEvent[], { batchSize = events.length, currency = 'USD' } = {}) {
      const config = { PLEDGEVIEW_PLATFORM_CURRENCY: currency }
      if (!leader) {
        leader = createTestFoldWorker(fresh.tables, fresh.databases, config).foldWorker
        await leader.acquireLeadership()
      }
      for (let from = 0; from < events.length; from += batchSize) {
        await ingest(events.slice(from, from + batchSize))
        await leader.fold()
      }
    },
    /** When each public campaign last changed, in Unix ms by its id. */
    stamps: () => stampsById(fresh),
    /** What the views say. */
    views: () => readViews(fresh.tables, fresh.databases),
  }
  beforeEach(async () => {
    const databases = await model.freshDatabases()
    Object.assign(fresh, { tables: model.tables, databases })
    ingest = createIngest(model.tables, databases)
    leader = undefined
    return () => model.giveBack(databases)
  })
  return fresh
}
