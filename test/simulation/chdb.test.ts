/**
 * That the simulation's model of ClickHouse behaves as ClickHouse does: worlds are played over the real engine, lose nothing
 * there either, and the model, given the same statements at the same moments, gives the same answers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ModelTables, openModelTables } from '../support/model-tables.ts'
import { createChdbEngine } from '../support/simulation/chdb-engine.ts'
import { createModelEngine } from '../support/simulation/model-engine.ts'
import { createKindOf } from '../support/simulation/statement-kinds.ts'
import { createTwinEngine } from '../support/simulation/twin-engine.ts'
import { playWorld } from '../support/simulation/world.ts'

describe('ClickHouse', () => {
  let tables: ModelTables

  beforeAll(async () => {
    tables = await openModelTables()
  })

  afterAll(() => tables.dispose())

  test.each([1, 2, 3, 4, 5, 6])('answers as the model does, world %i', { timeout: 300_000 }, async seed => {
    const databases = await tables.freshDatabases()
    const kindOf = createKindOf(databases)
    const model = createModelEngine({ kindOf, isBoundInclusive: true, isRestamping: true })
    const twin = createTwinEngine(createChdbEngine(tables.tables, databases), model, kindOf)
    const { losses } = await playWorld(seed, {
      usesIndex: seed % 2 === 0,
      engine: { engine: twin.engine, databases },
    })
    for (const d of twin.differences.slice(0, 1)) {
      const [x, y] = d.split(', and in the model ')
      let i = 0
      while ((x ?? '').slice((x ?? '').indexOf(': ') + 2)[i] === y?.[i]) i++
      console.log(
        'DIFF',
        seed,
        d.slice(0, 20),
        x?.slice(i, i + 150),
        '||',
        y?.slice(Math.max(0, i - 60), i + 90),
      )
    }
    expect(twin.differences).toEqual([])
    expect(losses).toEqual([])
    expect(twin.compared()).toBeGreaterThan(50)
    await tables.drop(databases)
  })
})
