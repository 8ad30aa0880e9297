/**
 * The usage on a cluster: written and read through the whole tables, with the settings of a cluster. The server is a cluster
 * of one shard. It has no Keeper, so its tables are not replicated; all else is as `migrate` makes it.
 */
import { expect, test } from 'vitest'
import { contactsOfKeys, versionOf } from '../../../../services/portal/notices/contacts.ts'
import { findRunaways } from '../../../../services/portal/notices/runaway.ts'
import { freePort } from '../../../../services/runtime/free-port.ts'
import { openTables } from '../../../../services/tables/clickhouse.ts'
import { migrate, readMigrations } from '../../../../services/tables/migrate.ts'
import { defaultDatabases } from '../../../../services/tables/port.ts'
import { distributedDatabases, replicatedSettings } from '../../../../services/tables/replicated.ts'
import { removeUsage } from '../../../../services/tables/usage.ts'
import { openOwnTables, settingsFor } from '../../../support/clickhouse.ts'
import { createTestRecorder, readUsage, totalOf } from '../../../support/usage.ts'

const cluster = 'main'
const whole = distributedDatabases(defaultDatabases)

test('counts, the last use and a removal work through the tables of all shards', async () => {
  const port = await freePort()
  const shard = { replica: { host: '127.0.0.1', port } }
  const more = { macros: { shard: 'one', replica: '1' }, remote_servers: { [cluster]: { shard: [shard] } } }
  const own = await openOwnTables({ nativePort: port, more })
  const tables = openTables({ ...settingsFor(own.clickHouse), statementSettings: replicatedSettings })
  try {
    await migrate(own.tables, defaultDatabases)
    await own.tables.run({ query: `CREATE DATABASE ${whole.model}` })
    for (const query of distributedTables()) await own.tables.run({ query })

    const now = Date.now()
    const usage = createTestRecorder(tables, whole, 'p', { now: () => now })
    await usage.start()
    for (const status of [200, 200, 401]) {
      usage.count('used', status, false)
      expect(await usage.flush()).toBe(true)
    }
    await usage.close()
    const read = (key: string) => readUsage(tables, whole, { key, now })
    expect(totalOf(await read('used'))).toMatchObject({ ok: 2, unauthorized: 1 })
    expect((await read('used')).last_used).toBe(Math.floor(now / 60_000) * 60_000)
    expect((await read('unused')).last_used).toBeUndefined()

    const insert = (into: string) =>
      own.tables.run({ query: `INSERT INTO ${defaultDatabases.model}.${into} SETTINGS async_insert = 0` })
    await insert(
      "api_key_ledger (api_key, version, account_id, integration_contact_email, is_unrevoked) SELECT 'used', 1, 'a', 'a@example.com', 1",
    )
    await insert("api_keys (api_key, is_active) SELECT 'used', 1")
    expect(await contactsOfKeys(tables, whole)).toEqual({ addresses: ['a@example.com'], invalid: 0 })
    expect(await contactsOfKeys(tables, whole, versionOf('v1'))).toMatchObject({
      addresses: ['a@example.com'],
    })
    expect(await findRunaways({ tables, databases: whole }, { until: now, done: [] })).toEqual([])

    await removeUsage({ tables: own.tables, databases: defaultDatabases }, ['used'])
    expect(totalOf(await read('used'))).toMatchObject({ ok: 0, unauthorized: 0 })
  } finally {
    await tables.close()
    await own.close()
  }
})

/** The statements that make the whole tables of the usage and the keys. */
function distributedTables(): string[] {
  return readMigrations(defaultDatabases, { replicated: { cluster } })
    .flatMap(({ statements }) => statements)
    .filter(statement =>
      /^CREATE TABLE .*_all\.(?:api_key_usage|api_keys|api_key_ledger|account_ledger) /.test(statement),
    )
    .map(statement => statement.replace(` ON CLUSTER '${cluster}'`, ''))
}
