import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { campaignColumns } from '../../../contracts/tables/campaign-columns.ts'
import { withCampaignFields } from '../../../contracts/tables/campaign-sql.ts'
import { requestsKeptMs, usageKeptMs } from '../../../services/portal/usage/usage-reader.ts'
import { batchesKeptMs } from '../../../services/projector/fold/watermark.ts'
import { dayMs } from '../../../services/runtime/runtime.ts'
import { generationOf, readCurrent } from '../../../services/tables/generation-log.ts'
import { type Databases, type Tables, TablesError } from '../../../services/tables/port.ts'
import { createGeneration, migrate, readMigrations } from '../../../services/tables/schema/migrate.ts'
import { nameDatabases } from '../../../services/tables/sql-text.ts'
import { versionedTables } from '../../../services/tables/superseded.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { lostConnection, obstructed } from '../../support/clickhouse/faulty-tables.ts'

interface TableColumn {
  name: string
  type: string
}

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

  async function columnsOf(database: string, table: string): Promise<TableColumn[]> {
    return tables.rows({
      query: `SELECT name, type FROM system.columns
              WHERE database = {database:String} AND table = {table:String} ORDER BY position`,
      query_params: { database, table },
    })
  }

  async function run(...statements: string[]): Promise<void> {
    for (const query of statements) await tables.run({ query })
  }

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

  test('applies every file, and nothing the second time: a statement whose connection is lost is repeated, one that is refused ends it', async () => {
    const databases = freshDatabases()
    const seen = new Set<string>()
    let failure = new TablesError('Not enough memory', { retryable: true, type: 'MEMORY_LIMIT_EXCEEDED' })
    const failing = obstructed(tables, {
      before({ kind, text }) {
        if (kind === 'rows' || seen.has(text) || !/DATABASE|\.migrations$|\.about/.test(text)) return
        seen.add(text)
        throw failure
      },
    })
    await expect(migrate(failing, databases)).rejects.toBe(failure)
    expect(seen.size).toBe(1)
    failure = lostConnection()
    expect(await migrate(failing, databases)).toEqual(readMigrations(databases).map(({ name }) => name))
    expect(seen.size).toBeGreaterThan(4)
    expect(await migrate(tables, databases)).toEqual([])
  })

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

  test('a log of generations that names none is an error with the way on, and no first generation is made beside others', async () => {
    const databases = freshDatabases()
    await migrate(tables, databases)
    const log = `${databases.base}.generation_log`
    await run(`ALTER TABLE ${log} DELETE WHERE kind = 'current' SETTINGS mutations_sync = 2`)
    await expect(readCurrent(tables, databases.base)).rejects.toThrow(
      `${log} names no current generation: restore it from a backup`,
    )
    await run(`TRUNCATE TABLE ${log}`)
    await expect(migrate(tables, databases)).rejects.toThrow(
      `there are the databases ${databases.ledger}, ${databases.read}, and ${log} names no current generation`,
    )
    expect(await tables.rows({ query: `SELECT * FROM ${log}` })).toEqual([])
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
    const reason = `the tables in ${databases.base} were made by an earlier version (0003-earlier.sql; this one has `
    // `pledgeview migrate` may have created topics and roles before.
    await expect(migrate(tables, databases)).rejects.toThrow(
      new RegExp(`${RegExp.escape(reason)}.*\\) and are unchanged\\.`),
    )
    expect(await schemaOf(databases)).toEqual(before)
  })

  test('of an earlier version leaves the views of a later one, whose processes may still run', async () => {
    const databases = freshDatabases()
    const { base, read, views } = databases
    await migrate(tables, databases)
    await run(
      `CREATE OR REPLACE VIEW ${views}.campaigns AS SELECT 1 AS later`,
      `CREATE OR REPLACE VIEW ${read}.campaign_pages AS SELECT 1 AS later`,
    )
    const noteLater = (number: number) =>
      run(`INSERT INTO ${base}.migrations (number, name) SELECT ${number}, 'later'`)
    // Of another generation, which says nothing of this one.
    await noteLater(2_099)
    await noteLater(1_099)
    const later = await schemaOf(databases)
    expect(await migrate(tables, databases)).toEqual([])
    expect(await schemaOf(databases)).toEqual(later)
    await run(`ALTER TABLE ${base}.migrations DELETE WHERE number = 1099 SETTINGS mutations_sync = 1`)
    await migrate(tables, databases)
    expect(await columnsOf(views, 'campaigns')).not.toContainEqual(expect.objectContaining({ name: 'later' }))
    expect(await columnsOf(read, 'campaign_pages')).not.toContainEqual(
      expect.objectContaining({ name: 'later' }),
    )
  })

  describe('its tables', () => {
    const databases = freshDatabases()
    let engines: Map<string, string>

    beforeAll(async () => {
      await migrate(tables, databases)
      const rows = await tables.rows<{ name: string; engine_full: string }>({
        query: `SELECT name, engine_full FROM system.tables
                WHERE database IN {names:Array(String)} AND engine LIKE '%MergeTree'`,
        query_params: { names: Object.values(databases) },
      })
      engines = new Map(rows.map(({ name, engine_full }) => [name, engine_full]))
    })

    test('have what they were sent on disk before they answer, except for those whose last rows nobody would miss', () => {
      const isSynced = (engine: string) =>
        engine.includes('fsync_after_insert = 1') && engine.includes('fsync_part_directory = 1')
      const others = [...engines].filter(([, engine]) => !isSynced(engine)).map(([name]) => name)
      expect(engines.size).toBeGreaterThan(15)
      expect(others.toSorted()).toEqual(['api_key_requests', 'freshness'])
    })

    test('forget rows after the times that deploy/erase.md and their own files say, and no other table forgets any', () => {
      const expired = [...engines].flatMap(([name, engine]) => {
        const [, ttl] = / TTL (.*) SETTINGS /.exec(engine) ?? []
        return ttl === undefined ? [] : [[name, ttl]]
      })
      expect(Object.fromEntries(expired)).toEqual({
        api_key_requests: `toDateTime(at) + toIntervalDay(${requestsKeptMs / dayMs})`,
        api_key_usage: `toDateTime(minute) + toIntervalDay(${usageKeptMs / dayMs})`,
        batch_log: `toDateTime(appended_at) + toIntervalDay(${batchesKeptMs / dayMs})`,
        fold_progress: 'toDateTime(written_at) + toIntervalDay(60)',
        freshness: 'toDateTime(minute) + toIntervalDay(90)',
        notice_ledger: 'toDateTime(changed_at) + toIntervalDay(800)',
        projector_log:
          "toDateTime(noted_at) + toIntervalDay(30) WHERE kind = 'misplaced', toDateTime(noted_at) + toIntervalDay(400)",
        projector_stops: 'toDateTime(stopped_at) + toIntervalDay(30)',
        rejects: 'toDateTime(kept_until)',
      })
    })

    test('that keep superseded rows are rewritten by a purge, except for bookkeeping and what it removes by rows', () => {
      const isVersioned = (engine: string) => engine.startsWith('Replacing')
      const versioned = [...engines].filter(([, engine]) => isVersioned(engine)).map(([name]) => name)
      const bookkeeping = ['positions', 'fold_progress', 'watermarks', 'quarantine', 'history_marks']
      const byRows = ['api_key_usage', 'api_key_requests', 'rejects']
      expect(versioned.toSorted()).toEqual([...versionedTables, ...bookkeeping, ...byRows].toSorted())
    })

    test('and its views have no column that could name a backer, a key or an account, and no bookkeeping', async () => {
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

    test('have the content columns of the list, which names every one that a reader can see', async () => {
      const hidden = new Set([
        ...['creator_id', 'content_hash', 'updated_at', 'fold_id', 'is_deleted', 'was_public'],
        ...['list_fields', 'reward_fields'],
      ])
      const columns = await columnsOf(databases.read, 'campaigns')
      const listed = campaignColumns.map(({ name, type }): TableColumn => ({ name, type }))
      expect(columns.filter(({ name }) => !hidden.has(name))).toEqual(listed)
    })

    test('of an earlier version get them by the migration of a new field', async () => {
      const { ledger, read, views } = databases
      const all = () =>
        Promise.all([
          columnsOf(ledger, 'campaign_ledger'),
          columnsOf(read, 'campaigns'),
          columnsOf(views, 'campaigns'),
        ])
      const before = await all()
      await run(
        `ALTER TABLE ${read}.campaigns MODIFY COLUMN list_fields String MATERIALIZED '{}'`,
        `ALTER TABLE ${read}.campaigns DROP COLUMN subtitle`,
        `ALTER TABLE ${ledger}.campaign_ledger DROP COLUMN subtitle`,
      )
      expect(await all()).not.toEqual(before)
      // As in a file below contracts/tables/generation. It runs for a generation that is being built, too, which no public view may show yet.
      const migration = withCampaignFields('${campaign_fields}')
      expect(migration).not.toContain('${views}')
      await run(...nameDatabases(migration, databases).split(';\n'))
      expect(await all()).toEqual(before)
      expect(await tables.rows({ query: `SELECT subtitle FROM ${views}.campaigns` })).toEqual([])
    })

    test('are read by the private views of every generation with what was added since, also of one that is kept', async () => {
      const kept = generationOf(databases, 2)
      await createGeneration(tables, kept, {})
      const before = await columnsOf(kept.read, 'campaign_pages')
      await run(`CREATE OR REPLACE VIEW ${kept.read}.campaign_pages AS SELECT 1`)
      await createGeneration(tables, kept, {})
      expect(await columnsOf(kept.read, 'campaign_pages')).toEqual(before)
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
