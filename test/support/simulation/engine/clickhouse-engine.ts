/**
 * The real ClickHouse with the simulation's time: every `now64` of a statement is the time at which the world says that it
 * started. A statement of the fold writes to a separate table until the world makes its rows visible.
 */
import type { Statement, Tables } from '../../../../services/tables/port.ts'
import { type Engine, isOfFirstBlock } from './engine.ts'
import { clickHouseTime } from './model-lists.ts'
import { targetOf } from './statement-kinds.ts'

export function createClickHouseEngine(tables: Tables): Engine {
  let stagings = 0
  return {
    read: (statement, startedAt) => tables.rows(at(statement, startedAt)),

    async stage(statement, _kind, startedAt) {
      const target = targetOf(statement)
      const staged = `${target}_staged_${++stagings}`
      await tables.run({ query: `CREATE TABLE ${staged} AS ${target} ENGINE = Memory` })
      const { query, query_params = {} } = at(statement, startedAt)
      await tables.run({
        query: query.replace(`INSERT INTO ${target}`, `INSERT INTO ${staged}`),
        query_params,
      })
      const key = target.endsWith('.campaigns') ? 'campaign_id' : `''`
      const ids = await tables.rows<{ id: string }>({ query: `SELECT ${key} AS id FROM ${staged}` })
      return async onlySome => {
        const shown = ids.map(({ id }) => id).filter(id => !onlySome || isOfFirstBlock(id))
        await tables.run({
          query: `INSERT INTO ${target} SELECT * FROM ${staged} WHERE ${key} IN {shown:Array(String)}
                  SETTINGS async_insert = 0`,
          query_params: { shown },
        })
        await tables.run({ query: `DROP TABLE ${staged}` })
      }
    },

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
      .replaceAll(/max_execution_time = [\d.]+/g, 'max_execution_time = 0'),
    query_params: query_params ?? {},
  }
}
