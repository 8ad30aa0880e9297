/** The read model of the tests of a file, or of a `describe`. */
import { afterAll, beforeAll } from 'vitest'
import { type ModelTables, openModelTables } from './model-tables.ts'

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
