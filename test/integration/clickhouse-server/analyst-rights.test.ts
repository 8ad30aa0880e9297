/** Proves that an analyst reads the views of `crowdfunding` and no other table, and cannot change anything with any query. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { EmbeddedTables } from '../../../services/local/tables.ts'
import { askAsAnalyst, waysToSet } from '../../support/analyst.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { askNative } from '../../support/native-protocol.ts'
import { publicViews } from '../../support/public-views.ts'

const campaigns = 3
// Tables that describe ClickHouse itself, the views, or the analyst.
const describing = [
  ...[
    'aggregate_function_combinators',
    'collations',
    'columns',
    'completions',
    'contributors',
    'current_roles',
  ],
  ...[
    'data_type_families',
    'database_engines',
    'databases',
    'dictionary_layouts',
    'disk_types',
    'enabled_roles',
  ],
  ...['formats', 'functions', 'licenses', 'one', 'privileges', 'quota_usage', 'settings', 'table_engines'],
  ...['table_functions', 'tables', 'time_zones'],
].map(name => `system.${name}`)

/** A view with parameters has columns only if it is called with them. */
const called = (name: string) => (name.endsWith('.campaign_by_slug') ? `${name}(slug = 'slug-0')` : name)

describe('an analyst', () => {
  let directory: TestDirectory
  let opened: EmbeddedTables
  let url: string

  beforeAll(async () => {
    directory = makeTestDirectory()
    opened = await directory.open()
    url = opened.door?.url ?? ''
    await opened.tables.run({
      query: `INSERT INTO pledgeview_read_1.campaigns (campaign_id, status, creator_id)
              SELECT toString(number), 'LIVE', toString(number) FROM numbers(${campaigns}) SETTINGS async_insert = 0`,
    })
  })

  afterAll(async () => {
    await opened.close()
    directory.remove()
  })

  test('reads every view, over both protocols', async () => {
    for (const view of publicViews) {
      expect(await askAsAnalyst(url, `SELECT * FROM crowdfunding.${view}`)).toMatchObject({ status: 200 })
    }
    expect(await answerTo('SELECT count() FROM crowdfunding.campaigns')).toBe(`${campaigns}\n`)
    expect(await native('SELECT campaign_id FROM crowdfunding.campaigns ORDER BY 1')).toEqual(['0', '1', '2'])
  })

  test('reads no other table, over either protocol, except those that describe ClickHouse itself', async () => {
    const all = await opened.tables.rows<{ name: string }>({
      query: `SELECT concat(database, '.', name) AS name FROM system.tables
              WHERE lower(database) NOT IN ('crowdfunding', 'information_schema')`,
    })
    const readable: string[] = []
    for (const { name } of all) {
      const { status, text } = await askAsAnalyst(url, `SELECT * FROM ${called(name)} LIMIT 1`)
      if (status === 200) readable.push(name)
      else expect(text, name).toContain('ACCESS_DENIED')
    }
    expect(all.length).toBeGreaterThan(50)
    expect(readable.toSorted()).toEqual(describing)
    for (const { name } of all.filter(one => !describing.includes(one.name))) {
      await expect(native(`SELECT 1 FROM ${called(name)}`), name).rejects.toMatchObject({ code: 497 })
    }
  })

  test('finds descriptions of the views only', async () => {
    const ours = "lower(database) NOT IN ('system', 'information_schema')"
    const described = publicViews.map(name => `crowdfunding\t${name}`)
    const tables = await answerTo(`SELECT database, name FROM system.tables WHERE ${ours}`)
    expect(tables.trim().split('\n').toSorted()).toEqual(described)
    const columns = await answerTo(`SELECT DISTINCT database, table FROM system.columns WHERE ${ours}`)
    expect(columns.trim().split('\n').toSorted()).toEqual(described)
    const standard = 'SELECT DISTINCT table_schema, table_name FROM information_schema.columns'
    const standardColumns = await answerTo(`${standard} WHERE ${ours.replace('database', 'table_schema')}`)
    expect(standardColumns.trim().split('\n').toSorted()).toEqual(described)
  })

  test('sees no database, grant, process or completion of others', async () => {
    expect(await answerTo('SHOW DATABASES')).toBe('crowdfunding\n')
    expect(await answerTo('SHOW TABLES FROM pledgeview')).toBe('')
    expect(await answerTo('SHOW COLUMNS FROM campaigns FROM pledgeview')).toBe('')
    expect(await answerTo('SHOW GRANTS')).toBe('GRANT SELECT ON crowdfunding.* TO analyst\n')
    const private_ =
      "match(word, '^(pledgeview|campaign_ledger|api_keys|creator_id|backer_hash|secret_hash|fold_id)')"
    expect(await answerTo(`SELECT word FROM system.completions WHERE ${private_}`)).toBe('')
  })

  test.each([
    'SHOW CREATE TABLE pledgeview_read_1.campaigns',
    'DESCRIBE TABLE pledgeview_read_1.campaigns',
    'EXISTS TABLE pledgeview_read_1.campaigns',
    'CHECK TABLE pledgeview_read_1.campaigns',
    'SHOW PROCESSLIST',
    'SHOW USERS',
    'SHOW ACCESS',
    'SHOW CLUSTERS',
    'SHOW CREATE USER pledgeview',
    "SELECT hasColumnInTable('pledgeview', 'campaigns', 'creator_id')",
    "SELECT * FROM merge('pledgeview', '.*')",
    "SELECT * FROM merge('system', 'processes|users')",
    "SELECT * FROM merge(REGEXP('.*'), 'api_keys')",
    "SELECT * FROM loop('pledgeview', 'campaigns')",
    'SELECT * FROM loop(pledgeview_read_1.campaigns)',
    "SELECT * FROM mergeTreeIndex('pledgeview', 'campaigns')",
    "SELECT * FROM mergeTreeAnalyzeIndexes('pledgeview', 'campaigns')",
    "SELECT * FROM mergeTreeTextIndex('pledgeview', 'campaigns', 'slug_index')",
    "SELECT * FROM mergeTreeProjection('pledgeview', 'campaigns', 'any')",
    "SELECT * FROM timeSeriesSamples('pledgeview', 'campaigns')",
    "SELECT * FROM cluster('default', pledgeview_read_1.campaigns)",
    'SELECT * FROM view(SELECT * FROM pledgeview_read_1.campaigns)',
    "SELECT * FROM eval('SELECT * FROM pledgeview.api_keys') SETTINGS allow_experimental_eval_table_function = 1",
    "SELECT joinGet('pledgeview_read_1.campaigns', 'creator_id', '1')",
    "SELECT dictGet('pledgeview_read_1.campaigns', 'creator_id', '1')",
    'SELECT 1 IN pledgeview.api_keys',
    'SELECT (SELECT count() FROM pledgeview.api_keys)',
    'WITH k AS (SELECT * FROM pledgeview.api_keys) SELECT count() FROM k',
    'SELECT * FROM crowdfunding.campaigns AS c, pledgeview.api_keys AS k',
    'SELECT 1 UNION ALL SELECT count() FROM pledgeview.api_keys',
    'SELECT creator_id FROM crowdfunding.campaigns',
    'EXPLAIN SELECT * FROM pledgeview_read_1.campaigns',
    'EXPLAIN ESTIMATE SELECT * FROM pledgeview_read_1.campaigns',
  ])('gets nothing from a private table: %s', expectRefused)

  test('gets the alternative, if a query has one for a table that may not be read', async () => {
    const either = "viewIfPermitted(SELECT api_key FROM pledgeview.api_keys ELSE null('api_key String'))"
    expect(await answerTo(`SELECT * FROM ${either}`)).toBe('')
  })

  describe.each(waysToSet)('cannot filter by a private column with a setting %s', (_, set) => {
    test.each([
      "additional_table_filters = {'pledgeview_read_1.campaigns': 'creator_id = \\'1\\''}",
      "additional_table_filters = {'campaigns': 'creator_id = \\'1\\''}",
      "parallel_replicas_custom_key = 'creator_id = \\'1\\'', enable_parallel_replicas = 1",
    ])('%s', async setting => {
      const counting = 'SELECT toUInt64(count()) AS campaigns FROM crowdfunding.campaigns'
      const { status, text } = await askAsAnalyst(url, set(counting, setting))
      if (status === 200) expect([...new Set(text.trim().split('\n'))]).toEqual([String(campaigns)])
      else expect(text).toMatch(/SETTING_CONSTRAINT_VIOLATION/)
    })
  })

  test.each([
    "INSERT INTO pledgeview.api_keys (api_key) VALUES ('k')",
    "INSERT INTO crowdfunding.campaigns (campaign_id) VALUES ('c')",
    "INSERT INTO pledgeview_read_1.campaigns (campaign_id) SELECT 'c'",
    "INSERT INTO FUNCTION remote('127.0.0.1', 'pledgeview', 'campaigns') (campaign_id) VALUES ('c')",
    'CREATE TABLE crowdfunding.mine (n UInt8) ENGINE = Memory',
    'CREATE TABLE mine (n UInt8) ENGINE = Memory',
    'CREATE TABLE crowdfunding.mine ENGINE = Memory AS SELECT 1 AS n',
    'CREATE TEMPORARY TABLE mine (n UInt8)',
    'CREATE VIEW crowdfunding.mine AS SELECT 1',
    'CREATE TEMPORARY VIEW mine AS SELECT 1',
    'CREATE OR REPLACE VIEW crowdfunding.campaigns AS SELECT * FROM pledgeview.api_keys',
    'CREATE MATERIALIZED VIEW crowdfunding.mine ENGINE = Memory AS SELECT * FROM crowdfunding.campaigns',
    'CREATE DATABASE mine',
    'CREATE DICTIONARY mine (n UInt64) PRIMARY KEY n SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(0)',
    'CREATE FUNCTION mine AS x -> x',
    'CREATE NAMED COLLECTION mine AS a = 1',
    'CREATE USER mine',
    'CREATE ROLE mine',
    'CREATE QUOTA mine TO analyst',
    'CREATE SETTINGS PROFILE mine TO analyst',
    'CREATE ROW POLICY mine ON crowdfunding.campaigns USING 1 TO analyst',
    'CREATE WORKLOAD mine IN all',
    'CREATE RESOURCE mine (QUERY)',
    'DROP WORKLOAD analyst',
    'DROP TABLE pledgeview_read_1.campaigns',
    'DROP VIEW crowdfunding.campaigns',
    'DROP DATABASE crowdfunding',
    'DROP USER pledgeview',
    'UNDROP TABLE pledgeview_read_1.campaigns',
    'TRUNCATE TABLE pledgeview_read_1.campaigns',
    'TRUNCATE DATABASE pledgeview',
    'DELETE FROM pledgeview_read_1.campaigns WHERE 1',
    "UPDATE pledgeview_read_1.campaigns SET title = '' WHERE 1",
    'ALTER TABLE pledgeview_read_1.campaigns DELETE WHERE 1',
    'ALTER TABLE pledgeview_read_1.campaigns DROP COLUMN title',
    'ALTER TABLE crowdfunding.campaigns MODIFY SQL SECURITY INVOKER',
    'ALTER TABLE crowdfunding.campaigns MODIFY QUERY SELECT 1',
    "ALTER USER analyst IDENTIFIED BY 'mine'",
    'ALTER USER analyst SETTINGS readonly = 0',
    'RENAME TABLE crowdfunding.campaigns TO crowdfunding.others',
    'EXCHANGE TABLES crowdfunding.campaigns AND crowdfunding.rewards',
    'ATTACH TABLE crowdfunding.campaigns',
    'DETACH TABLE crowdfunding.campaigns',
    'OPTIMIZE TABLE pledgeview_read_1.campaigns FINAL',
    'GRANT SELECT ON pledgeview.* TO analyst',
    'GRANT CURRENT GRANTS ON *.* TO analyst',
    'REVOKE SELECT ON crowdfunding.* FROM analyst',
    'SET ROLE pledgeview',
    'SET DEFAULT ROLE ALL TO analyst',
    'EXECUTE AS pledgeview SELECT 1',
    'SET readonly = 0',
    'SET readonly = 1, allow_ddl = 1',
    "SET profile = 'program'",
    "SELECT 1 SETTINGS profile = 'program'",
    "SELECT * FROM (SELECT 1 SETTINGS profile = 'program')",
    'CREATE TEMPORARY TABLE mine (n UInt8) SETTINGS allow_ddl = DEFAULT',
    'SYSTEM SHUTDOWN',
    'SYSTEM KILL',
    'SYSTEM RELOAD CONFIG',
    'SYSTEM RELOAD USERS',
    'SYSTEM STOP MERGES pledgeview_read_1.campaigns',
    'SYSTEM STOP LISTEN HTTP',
    'SYSTEM START LISTEN MYSQL',
    'SYSTEM FLUSH LOGS',
    'SYSTEM DROP MARK CACHE',
    'SYSTEM SYNC FILE CACHE',
    'SYSTEM ENABLE FAILPOINT replicated_merge_tree_commit_zk_fail_after_op',
    'KILL MUTATION WHERE 1',
    'KILL QUERY WHERE 1',
    "KILL QUERY WHERE user = 'pledgeview'",
    "BACKUP TABLE crowdfunding.campaigns TO Disk('default', 'mine')",
  ])('changes nothing: %s', async query => {
    await expectRefused(query)
    expect(await answerTo('SELECT count() FROM crowdfunding.campaigns')).toBe(`${campaigns}\n`)
  })

  test.each([
    "INSERT INTO pledgeview.api_keys (api_key) VALUES ('k')",
    'CREATE TEMPORARY TABLE mine (n UInt8)',
    'DROP TABLE pledgeview_read_1.campaigns',
  ])('changes nothing in a session that is no longer read-only: %s', async query => {
    // ClickHouse lets a query reset a setting that it may not change. So the analyst's rights must depend on grants alone.
    // One of its own: ClickHouse answers a request a moment before it gives up the session.
    const parameters = { session_id: randomUUID() }
    expect(await askAsAnalyst(url, 'SET readonly = DEFAULT', { parameters })).toMatchObject({ status: 200 })
    const { text } = await askAsAnalyst(url, query, { parameters })
    expect(text).toContain('ACCESS_DENIED')
  })

  test('stops no merges, although ClickHouse does not refuse it', async () => {
    await askAsAnalyst(url, 'SYSTEM STOP MERGES')
    await opened.tables.run({
      query: 'OPTIMIZE TABLE pledgeview_read_1.campaigns FINAL SETTINGS optimize_throw_if_noop = 1',
    })
  })

  test('ends no query of the program', async () => {
    const slow = opened.tables.rows({ query: 'SELECT count() FROM numbers(30) WHERE sleepEachRow(0.1) = 0' })
    const own = "query LIKE '%sleepEachRow(0.1)%' AND query NOT LIKE '%processes%'"
    const running = { query: `SELECT query_id FROM system.processes WHERE ${own}` }
    const [row] = await vi.waitUntil(
      async () => {
        const rows = await opened.tables.rows<{ query_id: string }>(running)
        return rows.length === 1 && rows
      },
      { timeout: 30_000, interval: 10 },
    )
    for (const how of ['ASYNC', 'SYNC', 'TEST']) {
      await expectRefused(`KILL QUERY WHERE query_id = '${row?.query_id}' ${how}`)
    }
    // Another way to end a query is to send a second query with the same id.
    await askAsAnalyst(url, 'SELECT 1', {
      parameters: { query_id: row?.query_id ?? '', replace_running_query: 1 },
    })
    expect(await slow).toEqual([{ 'count()': 30 }])
  })

  test.each([
    'profile=program',
    'readonly=0',
    'role=pledgeview',
    'allow_ddl=1',
    "http_response_headers={'Content-Type':'text/html'}",
    'quota_key=mine&readonly=0',
    'session_id=mine&readonly=0',
  ])('becomes no other user with a parameter: %s', async parameters => {
    const { status } = await askAsAnalyst(url, 'SELECT 1', {
      parameters: Object.fromEntries(new URLSearchParams(parameters)),
    })
    expect(status).not.toBe(200)
  })

  test('cannot make a page of this origin, or a header, with a query', async () => {
    const query =
      "SELECT * FROM (SELECT '<script>' SETTINGS http_response_headers = {'X-Own': 'a', 'Content-Type': 'text/html'})"
    const { headers } = await askAsAnalyst(url, query)
    expect(headers.get('x-own')).toBeNull()
    expect(headers.get('content-type')).not.toContain('html')
  })

  async function expectRefused(query: string): Promise<void> {
    const { status, text } = await askAsAnalyst(url, query)
    expect(status, `${query}: ${text}`).not.toBe(200)
    await expect(native(query), query).rejects.toMatchObject({ name: 'NativeError' })
  }

  async function answerTo(query: string): Promise<string> {
    const { status, text } = await askAsAnalyst(url, query)
    expect(status, text).toBe(200)
    return text
  }

  function native(query: string): Promise<string[]> {
    return askNative({ port: opened.door?.nativePort ?? 0, user: 'analyst', password: '' }, query)
  }
})
