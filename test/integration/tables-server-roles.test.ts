/**
 * Roles and replication as far as chDB can tell. It parses all their statements but lets nobody create users or roles, so
 * here their grants come from its configuration instead, word by word.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openServerTables } from '../../services/shared/tables/clickhouse-server.ts'
import { replicatedSettings } from '../../services/shared/tables/clickhouse-server-replicated.ts'
import { createRoles, readRoles } from '../../services/shared/tables/clickhouse-server-roles.ts'
import { migrate, readMigrations } from '../../services/shared/tables/migrate.ts'
import { defaultDatabases, type Tables, TablesError } from '../../services/shared/tables/port.ts'
import { settingsFor, startClickHouseDoor } from '../support/clickhouse-door.ts'

const definer = 'pledgeview_definer'
const { model, views } = defaultDatabases
const roleStatements = readRoles(defaultDatabases).flatMap(file => file.statements)
const viewNames = ['campaigns', 'rewards', 'categories', 'platform_totals'].map(name => `${views}.${name}`)

describe('roles', () => {
  let directory: string
  let data: string
  let privateTables: string[]

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pledgeview-roles-'))
    data = join(directory, 'data')
    const administrator = await openAs(undefined)
    await migrate(administrator.tables, defaultDatabases)
    for (const query of roleStatements.filter(statement => statement.startsWith('ALTER TABLE'))) {
      await administrator.tables.run({ query })
    }
    await administrator.tables.run({
      query: `INSERT INTO ${model}.campaigns (campaign_id, status, rewards) SELECT 'c1', 'LIVE',
                [('r1', '', '', 1, NULL, 0, NULL)] SETTINGS async_insert = 0`,
    })
    const rows = await administrator.tables.rows<{ name: string }>({
      query: 'SELECT name FROM system.tables WHERE database = {model:String}',
      query_params: { model },
    })
    privateTables = rows.map(({ name }) => `${model}.${name}`)
    await administrator.close()
  })

  afterAll(() => rm(directory, { recursive: true, force: true }))

  /** The data as somebody sees them who has one role and nothing else; without a role, an administrator. */
  async function openAs(role: string | undefined): Promise<{ tables: Tables; close(): Promise<void> }> {
    const users = join(directory, `users-${role}.xml`)
    const configFile = join(directory, `config-${role}.xml`)
    await writeFile(users, usersXml(role))
    await writeFile(configFile, `<clickhouse><users_config>${users}</users_config></clickhouse>`)
    const door = await startClickHouseDoor({ directory: data, configFile })
    const tables = openServerTables(settingsFor(door))
    return {
      tables,
      async close() {
        await tables.close()
        await door.stop()
      },
    }
  }

  test.each([
    ['pledgeview_analyst', []],
    ['pledgeview_query', [`${model}.api_keys`, `${model}.campaign_changes`, `${model}.identity`]],
  ])('%s reads the views and %j, and can do nothing else', async (role, readable) => {
    const { tables, close } = await openAs(role)
    for (const table of [...viewNames, ...readable]) {
      await expect(tables.rows({ query: `SELECT * FROM ${table}` }), table).resolves.toBeInstanceOf(Array)
    }
    expect(await tables.rows({ query: `SELECT campaign_id FROM ${views}.campaigns` })).toHaveLength(1)
    expect(await tables.rows({ query: `SELECT reward_id FROM ${views}.rewards` })).toHaveLength(1)
    expect(privateTables.length).toBeGreaterThan(7)
    const forbidden = [
      ...privateTables
        .filter(table => !readable.includes(table))
        .map(table => `SELECT count(*) FROM ${table}`),
      ...[...privateTables, ...viewNames].map(table => `DROP TABLE ${table}`),
      ...privateTables.map(table => `TRUNCATE TABLE ${table}`),
      `INSERT INTO ${model}.api_keys (api_key) SELECT 'k'`,
      `ALTER TABLE ${views}.campaigns MODIFY SQL SECURITY INVOKER`,
      "SELECT * FROM file('/etc/passwd', LineAsString)",
      "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
    ]
    for (const query of forbidden) {
      await expect(tables.run({ query }), query).rejects.toMatchObject({ type: 'ACCESS_DENIED' })
    }
    await close()
  })

  test('are not forced upon a server that lets us create none, which is said', async () => {
    const door = await startClickHouseDoor()
    const tables = openServerTables(settingsFor(door))
    await migrate(tables, defaultDatabases)
    const { refused } = await createRoles(tables, defaultDatabases)
    expect(refused).toContain('CREATE USER')
    await tables.close()
    await door.stop()
  })

  test('that fail for another reason fail loudly', async () => {
    const failing: Pick<Tables, 'run'> = {
      run: () => Promise.reject(new TablesError('gone', { retryable: true, type: 'NETWORK_ERROR' })),
    }
    await expect(createRoles(failing as Tables, defaultDatabases)).rejects.toThrow('gone')
  })

  test('of analysts have bounds on time and memory that a query cannot lift', () => {
    const [analyst = ''] = roleStatements.filter(statement => statement.includes('EXISTS pledgeview_analyst'))
    for (const setting of ['max_execution_time', 'max_memory_usage', 'max_memory_usage_for_user']) {
      expect(analyst).toMatch(new RegExp(`\\b${setting} = (\\d+) MIN 1 MAX \\1\\b`))
    }
  })
})

describe('what is generated', () => {
  test.each([
    ['on one server', {}],
    ['on a cluster', { replicated: { cluster: 'main' } }],
  ])('%s is SQL that ClickHouse can parse, and settings that it knows', async (_, options) => {
    const door = await startClickHouseDoor()
    const tables = openServerTables({ ...settingsFor(door), statementSettings: replicatedSettings })
    const files = [...readMigrations(defaultDatabases, options), ...readRoles(defaultDatabases, options)]
    const statements = files.flatMap(file => file.statements)
    expect(statements.length).toBeGreaterThan(20)
    for (const sql of statements) {
      await expect(
        tables.rows({ query: 'SELECT formatQuery({sql:String})', query_params: { sql } }),
        sql,
      ).resolves.toHaveLength(1)
    }
    await tables.close()
    await door.stop()
  })
})

/** A configuration in which the one who asks has just the grants of a role, and the definer just its own. */
function usersXml(role: string | undefined): string {
  const network = '<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>'
  const asker = role === undefined ? '<access_management>1</access_management>' : grantsOf(role)
  return `<clickhouse>
    <profiles><default/></profiles>
    <quotas><default/></quotas>
    <users>
      <default><password></password>${network}${asker}</default>
      <${definer}><no_password/><networks/>${grantsOf(definer)}</${definer}>
    </users>
  </clickhouse>`
}

function grantsOf(grantee: string): string {
  const grants = roleStatements.flatMap(
    statement => new RegExp(`^(GRANT .*) TO ${grantee}$`).exec(statement)?.[1] ?? [],
  )
  return `<grants>${grants.map(grant => `<query>${grant}</query>`).join('')}</grants>`
}
