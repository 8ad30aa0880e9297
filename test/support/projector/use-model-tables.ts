/** The read model of the tests of a file, or of a `describe`. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { createIngest, type ModelTables, openModelTables } from './model-tables.ts'

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
    drop: databases => opened.drop(databases),
    dispose: () => opened.dispose(),
  }
}

/** The tables of a file, with empty databases for each test. `ingest` writes events to them, a batch a call. */
export interface FreshModel {
  tables: Tables
  databases: Databases
  ingest(events: readonly ChangeEvent[]): Promise<void>
}

export function useFreshModel(): FreshModel {
  const model = useModelTables()
  let databases: Databases
  let ingest: FreshModel['ingest']
  beforeEach(async () => {
    databases = await model.freshDatabases()
    ingest = createIngest(model.tables, databases)
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
  }
}
