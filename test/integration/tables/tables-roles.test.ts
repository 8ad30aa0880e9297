/**
 * Roles on a ClickHouse server. Its users are in a file, and SQL cannot create any there. So each role is a user
 * here, with exactly the grants and bounds of the SQL.
 */
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printDone } from '../../../services/commands/migrate.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { type Tables, TablesError } from '../../../services/tables/port.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { createRoles, readRole, readRoles } from '../../../services/tables/schema/roles.ts'
import { type OwnTables, openOwnTables, settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { privateViews, publicViews } from '../../support/clickhouse/public-views.ts'
import { readableTables } from '../../support/clickhouse/readable-tables.ts'
import { shardUsers } from '../../support/clickhouse/shards.ts'

const { base, ledger, read, views } = defaultDatabases
const viewNames = publicViews.map(name => `${views}.${name}`)
const networks = { ip: '127.0.0.1' }

describe('roles', () => {
  let own: OwnTables
  let privateTables: string[]

  beforeAll(async () => {
    own = await openOwnTables({ moreUsers: { users: usersOf(...shardUsers) } })
    const { tables } = own
    const { options } = await createRoles(tables, defaultDatabases)
    await migrate(tables, defaultDatabases, options)
    await tables.run({
      query: `INSERT INTO ${read}.campaigns (campaign_id, status, rewards) SELECT 'c1', 'LIVE',
                [('r1', '', '', 1, NULL, 0, NULL)] SETTINGS async_insert = 0`,
    })
    const rows = await tables.rows<{ name: string }>({
      query: `SELECT concat(database, '.', name) AS name FROM system.tables WHERE database IN {own:Array(String)}`,
      query_params: { own: [base, ledger, read] },
    })
    // A view with a parameter can be read only with a value of it.
    const form = (name: string) => (name.endsWith('.campaign_by_slug') ? `${name}(slug = 'slug')` : name)
    privateTables = rows.map(({ name }) => form(name))
  })

  afterAll(() => own.close())

  test.each(shardUsers)(
    '%s reads the views and its own tables, writes the usage of keys if it is the query service, and can do nothing else',
    async user => {
      const tables = openTables({ ...settingsFor(own.clickHouse), user, password: '' })
      const [readable, unreadable] = [true, false].map(may =>
        privateTables.filter(table => readableTables[user].includes(nameOf(table)) === may),
      ) as [string[], string[]]
      expect(readable).toHaveLength(readableTables[user].length)
      for (const table of [...viewNames, ...readable]) {
        await expect(tables.rows({ query: `SELECT * FROM ${table}` }), table).resolves.toBeInstanceOf(Array)
      }
      expect(await tables.rows({ query: `SELECT campaign_id FROM ${views}.campaigns` })).toHaveLength(1)
      expect(await tables.rows({ query: `SELECT reward_id FROM ${views}.rewards` })).toHaveLength(1)
      expect(privateTables.length).toBeGreaterThan(7)
      const forbidden = [
        ...unreadable.map(table => `SELECT count(*) FROM ${table}`),
        ...[...privateTables, ...viewNames].map(table => `DROP TABLE ${withoutParameter(table)}`),
        ...privateTables.map(table => `TRUNCATE TABLE ${withoutParameter(table)}`),
        `INSERT INTO ${base}.api_keys (api_key) SELECT 'k'`,
        `ALTER TABLE ${views}.campaigns MODIFY SQL SECURITY INVOKER`,
        "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
        'SELECT * FROM system.users',
      ]
      for (const query of forbidden) {
        await expect(tables.run({ query }), query).rejects.toMatchObject({ type: 'ACCESS_DENIED' })
      }
      // ClickHouse asks for its working directory before it asks for the right, and has none.
      await expect(tables.run({ query: "SELECT * FROM file('/etc/passwd', LineAsString)" })).rejects.toThrow(
        'current_path',
      )
      const written = tables.insert({
        table: `${base}.api_key_usage`,
        columns: [{ name: 'process', type: 'LowCardinality(String)' }],
        rows: new Uint8Array([1, 112]),
      })
      if (user === 'pledgeview_query') await written
      else await expect(written).rejects.toMatchObject({ type: 'ACCESS_DENIED' })
      await tables.close()
    },
  )

  test('pledgeview_portal may note the pepper of the keys that it issues, and is refused with another one', async () => {
    const tables = openTables({ ...settingsFor(own.clickHouse), user: 'pledgeview_portal', password: '' })
    await holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_KEY_PEPPER: 'a pepper' })
    await expect(
      holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_KEY_PEPPER: 'another' }),
    ).rejects.toThrow('PLEDGEVIEW_KEY_PEPPER differs')
    await tables.close()
  })

  test('the settings of the definer are ones that the server knows, and may be constant; only a users file stops them', async () => {
    const settings = readFileOf('0001-definer.sql').filter(query => query.startsWith('ALTER USER '))
    expect(settings).toHaveLength(1)
    for (const query of settings) {
      await expect(own.tables.run({ query })).rejects.toMatchObject({ type: 'ACCESS_STORAGE_READONLY' })
      const unknown = query.replace('max_threads', 'most_threads')
      await expect(own.tables.run({ query: unknown })).rejects.toMatchObject({ type: 'UNKNOWN_SETTING' })
    }
  })

  test('are not forced upon a server that lets us create none, which is said; its views read as the definer', async () => {
    const { refused } = await createRoles(own.tables, defaultDatabases)
    expect(refused).toContain('pledgeview_definer')
    const definitions = await own.tables.rows<{ query: string }>({
      query: `SELECT create_table_query AS query FROM system.tables WHERE engine = 'View' AND database IN ('${base}', '${read}', '${views}')`,
    })
    expect(definitions).toHaveLength(publicViews.length + privateViews.length)
    for (const { query } of definitions)
      expect(query).toContain('DEFINER = pledgeview_definer SQL SECURITY DEFINER')
  })

  test('on shards, the views read as the definer only if each shard has it', async () => {
    const { rows } = own.tables
    const outcomeOf = (...found: (typeof rows)[]) => {
      const shards = found.map(of => ({ ...own.tables, rows: of }))
      return createRoles({ ...own.tables, shards }, defaultDatabases)
    }
    const usable = { options: { viewsDefiner: 'pledgeview_definer' }, definerLacks: [] }
    expect(await outcomeOf(rows, rows)).toMatchObject(usable)
    const { options, definerLacks } = await outcomeOf(rows, async () => [])
    expect(options).toEqual({})
    expect(definerLacks).toContain(`GRANT SELECT ON ${base}.identity`)
  })

  test('without a right of the definer, migrate says which one it is, and as whom the views read', async () => {
    const outcome = await createRoles(own.tables, defaultDatabases, { cluster: 'main' })
    expect(outcome.options).toEqual({ cluster: 'main' })
    const stderr = new PassThrough({ encoding: 'utf8' })
    const { refused = null, definerLacks } = outcome
    printDone(
      { applied: [], topics: [], warnings: [], roles_refused: refused, definer_lacks: definerLacks },
      { stdout: stderr, stderr },
    )
    const text = stderr.read()
    expect(text).toContain('the views read with all rights of the user of PLEDGEVIEW_CLICKHOUSE_USER')
    expect(text).toContain(`  GRANT SELECT ON ${base}_all.identity TO pledgeview_definer\n`)
    expect(text).not.toContain(`ON ${base}.identity`)
  })

  test('on shards, the wildcards of the generations have the whole tables too', () => {
    const grants = [...shardUsers, 'pledgeview_definer'].flatMap(
      user => readRole(user, defaultDatabases, { cluster: 'main' }).grants,
    )
    expect(grants).toContain(`GRANT SELECT ON ${base}_read_*.*`)
    expect(grants.filter(grant => /_all_|_parts_/.test(grant))).toEqual([])
  })

  test('that fail for another reason fail loudly', async () => {
    const failing: Pick<Tables, 'run'> = {
      run: () => Promise.reject(new TablesError('gone', { retryable: true, type: 'NETWORK_ERROR' })),
    }
    await expect(createRoles(failing as Tables, defaultDatabases)).rejects.toThrow('gone')
  })

  test('of analysts have bounds that a query cannot lift, and settings that the server knows', async () => {
    const { settings } = readRole('pledgeview_analyst', defaultDatabases)
    // On shards, the rows of a result may be without a bound: its bytes have one (0003-analyst.sql). The network and the disk have none,
    // and a query cannot set one for all analysts.
    for (const { name, value, range } of settings.filter(({ name }) =>
      /^max_(?!network|temporary)/.test(name),
    )) {
      expect(Number(value), name).toBeGreaterThan(0)
      if (range && name !== 'max_result_rows') expect(range.min, name).toBe('1')
    }
    const known = await own.tables.rows<{ name: string; type: string }>({
      query: 'SELECT name, type FROM system.settings',
    })
    expect(settings.filter(({ name }) => !known.some(setting => setting.name === name))).toEqual([])
    // ClickHouse would send requests to these addresses.
    const addresses = known.filter(({ type }) => type === 'URI')
    expect(addresses).toHaveLength(1)
    for (const { name } of addresses) expect(settings).toContainEqual({ name, value: '' })
  })

  // Migrations run in every suite, those of a cluster in test/integration/shards. This server can run no statement of a role.
  test('are SQL that ClickHouse can parse, on one server and on a cluster', async () => {
    const files = [{}, { cluster: 'main' }].flatMap(options => readRoles(defaultDatabases, options))
    const statements = files.flatMap(file => file.statements)
    expect(statements.length).toBeGreaterThan(20)
    const query = 'SELECT formatQuery({sql:String})'
    for (const sql of statements)
      await expect(own.tables.rows({ query, query_params: { sql } }), sql).resolves.toHaveLength(1)
  })
})

/** Users without a password that have just the grants of these roles. */
function usersOf(...roles: string[]) {
  return Object.fromEntries(
    roles.map(role => [
      role,
      {
        password: '',
        networks,
        profile: 'default',
        quota: 'default',
        grants: { query: readRole(role, defaultDatabases).grants },
      },
    ]),
  )
}

function readFileOf(name: string): string[] {
  return readRoles(defaultDatabases).find(file => file.name === name)?.statements ?? []
}

function withoutParameter(table: string): string {
  return table.replace(/\(.*\)$/, '')
}

function nameOf(table: string): string {
  return withoutParameter(table).split('.')[1] ?? ''
}
