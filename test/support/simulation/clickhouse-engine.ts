/**
 * The real ClickHouse with the simulation's time: every `now64` of a statement is the time at which the world says that it
 * started. A fold writes to a separate table until the world makes its rows visible.
 */
import type { Databases, Statement, Tables } from '../../../services/shared/tables/port.ts'
import { type Engine, isOfFirstBlock } from './engine.ts'
import { clickHouseTime } from './model-lists.ts'

export function createClickHouseEngine(tables: Tables, { model }: Databases): Engine {
  let stagings = 0
  return {
    read: (statement, startedAt) => tables.rows(at(statement, startedAt)),

    async stage(statement, _kind, startedAt) {
      const staged = `${model}.staged_${++stagings}`
      await tables.run({
        query: `CREATE TABLE ${staged} ENGINE = Memory EMPTY AS SELECT * FROM ${model}.campaigns`,
      })
      const { query, query_params } = at(statement, startedAt)
      const target = `INSERT INTO ${model}.campaigns (`
      if (!query.includes(target)) throw new Error(`a fold statement that does not begin with ${target}`)
      await tables.run({
        query: query.replace(target, `INSERT INTO ${staged} (`),
        query_params: query_params ?? {},
      })
      const ids = await tables.rows<{ id: string }>({ query: `SELECT campaign_id AS id FROM ${staged}` })
      return {
        rows: ids.length,
        async publish({ onlySome = false } = {}) {
          const shown = ids.map(({ id }) => id).filter(id => !onlySome || isOfFirstBlock(id))
          await tables.run({
            query: `INSERT INTO ${model}.campaigns SELECT * FROM ${staged} WHERE campaign_id IN {shown:Array(String)}
                    SETTINGS async_insert = 0`,
            query_params: { shown },
          })
          await tables.run({ query: `DROP TABLE ${staged}` })
        },
      }
    },

    run: (statement, _kind, startedAt) => tables.run(at(statement, startedAt)),
    async touchedBy() {
      throw new Error('only the model of ClickHouse knows this')
    },
    insert: insert => tables.insert(insert),
  }
}

function at({ query, query_params }: Statement, startedAt: number): Statement {
  const moment = `toDateTime64('${clickHouseTime(startedAt)}', 3, 'UTC')`
  return {
    query: query
      .replaceAll("now64(3, 'UTC')", moment)
      // The world says how long a statement takes, not the machine.
      .replaceAll(/max_execution_time = [\d.]+/g, 'max_execution_time = 0')
      // A hash that the model has too, so that a piece has the same campaigns in both.
      .replaceAll('cityHash64(campaign_id)', 'bitShiftLeft(toUInt64(CRC32(campaign_id)), 32)'),
    query_params: query_params ?? {},
  }
}
