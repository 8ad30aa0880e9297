/**
 * Shows that the simulation's model of ClickHouse behaves like ClickHouse. Worlds are played on the real engine, and lose
 * nothing there either. The model gets the same statements at the same times, and has to give the same answers.
 */
import { describe, expect, test } from 'vitest'
import { simulate } from '../prove/simulated.ts'
import { useModelTables } from '../support/projector/use-model-tables.ts'
import { createClickHouseEngine } from '../support/simulation/engine/clickhouse-engine.ts'
import { createModelEngine } from '../support/simulation/engine/model-engine.ts'
import { completeSince } from '../support/simulation/engine/model-lists.ts'
import { createKindOf } from '../support/simulation/engine/statement-kinds.ts'
import { createTwinEngine } from '../support/simulation/engine/twin-engine.ts'
import { seedsOf } from '../support/simulation/seeds.ts'

// Without the list index and with it; in the last one the clock steps. Together they have every kind of statement that the simulation
// has; each takes many seconds.
const worlds = seedsOf(0, { also: [5, 30, 201] })

describe('ClickHouse', () => {
  const tables = useModelTables()

  test.each(worlds)('answers as the model does, world %i', { timeout: 300_000 }, async seed => {
    const databases = await tables.freshDatabases()
    // The model merges nothing: a merge drops the superseded rows of a campaign.
    await tables.tables.run({ query: `SYSTEM STOP MERGES ${databases.read}.campaigns` })
    // The tables are older than the world.
    await tables.tables.run({
      query: `INSERT INTO ${databases.read}.campaigns (campaign_id, updated_at, fold_id, is_deleted)
              SELECT '', fromUnixTimestamp64Milli(${completeSince}, 'UTC'), 1, 1`,
    })
    const kindOf = createKindOf(databases)
    const model = createModelEngine(kindOf)
    const twin = createTwinEngine(createClickHouseEngine(tables.tables), model, kindOf)
    const { violations } = await simulate(seed, {
      usesIndex: seed % 2 === 0,
      engine: { engine: twin.engine, databases },
    })
    expect(twin.differences).toEqual([])
    expect(violations).toEqual([])
    expect(twin.compared()).toBeGreaterThan(50)
    await tables.giveBack(databases)
  })
})
