import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generationOf } from '../../../services/tables/generations.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import { migrate, readMigrations } from '../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'

describe('migrate', () => {
  let own: OwnTables
  let tables: Tables
  let count = 0

  beforeAll(async () => {
    own = await openOwnTables()
    tables = own.tables
  })

  afterAll(() => own.close())

  function freshDatabases(): Databases {
    count++
    return generationOf({ base: `model_${count}`, views: `views_${count}` }, 1)
  }

  async function schemaOf(databases: Databases): Promise<unknown[]> {
    return tables.rows({
      query: `SELECT replaceRegexpAll(create_table_query, '(model|views)_[0-9]+', '') AS query FROM system.tables
              WHERE database IN {names:Array(String)} ORDER BY query`,
      query_params: { names: Object.values(databases) },
    })
  }

  test('applies every file once, in order, and nothing the second time', async () => {
    const databases = freshDatabases()
    const applied = await migrate(tables, databases)
    expect(applied).toEqual(readMigrations(databases).map(migration => migration.name))
    expect(applied).toEqual(applied.toSorted())
    expect(await migrate(tables, databases)).toEqual([])
  })

  test('a migration that is cut off after each of its statements is repeated, and comes out the same', async () => {
    const whole = freshDatabases()
    await migrate(tables, whole)
    const databases = freshDatabases()
    const done = new Set<string>()
    for (let outcome = ''; outcome !== 'whole'; ) {
      outcome = await migrate(cutOffAfterOne(tables, done), databases).then(() => 'whole', String)
      expect(outcome).toMatch(/whole|cut off/)
    }
    expect(done.size).toBeGreaterThan(40)
    expect(await schemaOf(databases)).toEqual(await schemaOf(whole))
  }, 240_000)

  test('migrating again keeps what is in the tables', async () => {
    const databases = freshDatabases()
    await migrate(tables, databases)
    await tables.run({
      query: `INSERT INTO ${databases.ledger}.fold_epochs (epoch, holder) SELECT 7, 'someone'`,
    })
    await tables.run({ query: `TRUNCATE TABLE ${databases.base}.migrations` })
    await migrate(tables, databases)
    const rows = await tables.rows({ query: `SELECT epoch FROM ${databases.ledger}.fold_epochs` })
    expect(rows).toEqual([{ epoch: 7 }])
  })

  test('refuses the tables of an earlier version by the file that made them, and changes nothing', async () => {
    const databases = freshDatabases()
    await migrate(tables, databases)
    await tables.run({
      query: `ALTER TABLE ${databases.base}.migrations UPDATE name = '0003-earlier.sql' WHERE number = 3 SETTINGS mutations_sync = 2`,
    })
    // A migration would make it again.
    await tables.run({ query: `DROP VIEW ${databases.views}.about` })
    const before = await schemaOf(databases)
    await expect(migrate(tables, databases)).rejects.toThrow(
      `the tables in ${databases.base} are those of an earlier version, which made them with 0003-earlier.sql`,
    )
    expect(await schemaOf(databases)).toEqual(before)
  })

  describe('its views', () => {
    const databases = freshDatabases()

    beforeAll(async () => {
      await migrate(tables, databases)
    })

    test('the views have no column that could name a backer, a key or an account, and no bookkeeping', async () => {
      const columns = await tables.rows<{ table: string; name: string }>({
        query: 'SELECT table, name FROM system.columns WHERE database = {views:String}',
        query_params: { views: databases.views },
      })
      const isPrivate =
        /backer(?!_count$|s$)|hash|account|secret|email|creator_id|version|fold|epoch|deleted|(^|_)key/
      // `about` has the version of the program, and when its numbers were computed last.
      const private_ = columns.filter(({ table, name }) => table !== 'about' && isPrivate.test(name))
      expect(private_).toEqual([])
      const ofAbout = columns.filter(({ table, name }) => table === 'about' && isPrivate.test(name))
      expect(ofAbout.map(({ name }) => name).toSorted()).toEqual(['last_fold_at', 'version'])
    })

    test('the views read as their definer, so that a role needs no right on the model', async () => {
      const views = await tables.rows<{ query: string }>({
        query: 'SELECT create_table_query AS query FROM system.tables WHERE database = {views:String}',
        query_params: { views: databases.views },
      })
      for (const { query } of views) expect(query).toContain('SQL SECURITY DEFINER')
    })
  })
})

/** Tables that are cut off after the first statement or insert that is not in `done`. Those in `done` run before it. */
function cutOffAfterOne(tables: Tables, done: Set<string>): Tables {
  let isOver = false
  function count(name: string): void {
    if (done.has(name)) return
    if (isOver) throw new Error('cut off')
    isOver = true
    done.add(name)
  }
  return {
    ...tables,
    async run(statement) {
      count(statement.query)
      await tables.run(statement)
    },
    async insert(insert) {
      count(`${insert.table} ${Buffer.from(insert.rows).toString('base64')}`)
      await tables.insert(insert)
    },
  }
}
