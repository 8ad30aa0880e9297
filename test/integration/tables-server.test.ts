import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openServerTables } from '../../services/shared/tables/clickhouse-server.ts'
import { migrate, readMigrations } from '../../services/shared/tables/migrate.ts'
import { defaultDatabases, type Tables } from '../../services/shared/tables/port.ts'
import { type ClickHouseDoor, settingsFor, startClickHouseDoor } from '../support/clickhouse-door.ts'
import { answers, startMisbehavingServer } from '../support/misbehaving-server.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { clickHouseService } from '../support/services/clickhouse.ts'
import { useService } from '../support/services/test-service.ts'
import { describeTables } from './tables.conformance.ts'

describe.each([
  ['plain', false],
  ['compressed', true],
])('%s', (name, compression) => {
  const clickHouse = useService(clickHouseService)

  describeTables(`ClickHouse over HTTP, ${name}`, async () => {
    const tables = openServerTables({ ...settingsFor(clickHouse()), compression })
    return { tables, dispose: tables.close }
  })
})

describe('ClickHouse over HTTP', () => {
  let door: ClickHouseDoor
  let tables: Tables

  beforeAll(async () => {
    door = await startClickHouseDoor()
    tables = openServerTables(settingsFor(door))
  })

  afterAll(async () => {
    await tables.close()
    await door.stop()
  })

  test('takes the migrations', async () => {
    expect(await migrate(tables, defaultDatabases)).toEqual(
      readMigrations(defaultDatabases).map(migration => migration.name),
    )
    expect(await migrate(tables, defaultDatabases)).toEqual([])
  })

  test('takes a thousand long ids as a parameter', async () => {
    const ids = Array.from({ length: 1_000 }, (_, n) => `${n}'\\`.padStart(256, 'é'))
    const [row] = await tables.rows<{ ids: string[] }>({
      query: 'SELECT {ids:Array(String)} AS ids',
      query_params: { ids },
    })
    expect(row?.ids).toEqual(ids)
  })

  test('keeps a statement that works for longer than it may be silent', async () => {
    const impatient = openServerTables({ ...settingsFor(door), silenceMsMax: 300 })
    await impatient.run({ query: 'CREATE TABLE slow (n UInt8) ENGINE = MergeTree ORDER BY n' })
    await impatient.run({ query: 'INSERT INTO slow SELECT sleep(1) SETTINGS async_insert = 0' })
    const late = impatient.run({ query: 'SELECT throwIf(sleep(1) = 0)' })
    await expect(late).rejects.toMatchObject({
      type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
      retryable: false,
    })
    expect(await tables.rows({ query: 'SELECT count() AS rows FROM slow' })).toEqual([{ rows: 1 }])
    await impatient.close()
  })

  test('refuses to write where rows are asked for', async () => {
    await tables.run({ query: 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n' })
    const written = tables.rows({ query: 'INSERT INTO kept SELECT 1' })
    await expect(written).rejects.toMatchObject({ type: 'READONLY', retryable: false })
    expect(await tables.rows({ query: 'SELECT n FROM kept' })).toEqual([])
  })

  test('says that credentials are wrong, without saying them', async () => {
    const stranger = openServerTables({ ...settingsFor(door), password: 'wrong-password' })
    const refused = stranger.run({ query: 'SELECT 1' })
    await expect(refused).rejects.toMatchObject({ type: 'AUTHENTICATION_FAILED', retryable: false })
    await expect(refused).rejects.not.toThrow('wrong-password')
    await stranger.close()
  })

  test('is there again after a server that was killed comes back, with what was acknowledged', async () => {
    const first = await startClickHouseDoor()
    const { port } = new URL(first.url)
    const lasting = openServerTables(settingsFor(first))
    await lasting.run({ query: 'CREATE TABLE kept (n UInt32) ENGINE = MergeTree ORDER BY n' })
    await lasting.insert({ table: 'kept', columns: ['n'], format: 'TSV', body: '1\n' })
    await first.kill()
    await expect(lasting.rows({ query: 'SELECT n FROM kept' })).rejects.toMatchObject({ retryable: true })
    const second = await startClickHouseDoor({ directory: first.directory, port: Number(port) })
    expect(await lasting.rows({ query: 'SELECT n FROM kept' })).toEqual([{ n: 1 }])
    await lasting.close()
    await second.stop()
    await first.stop()
  })
})

describe('TLS', () => {
  const openssl: Requirement = {
    isMet: spawnSync('openssl', ['version']).status === 0,
    reason: 'openssl is not installed, which makes the certificate',
  }

  test('a server whose authority is not known is not talked to; one whose authority is given, is', async context => {
    needs(context, openssl)
    const certificate = await selfSigned()
    const server = await startMisbehavingServer([answers('{"n":1}\n')], certificate)
    const credentials = { url: server.url, user: 'u', password: 'p' }
    const strict = openServerTables(settingsFor(credentials))
    await expect(strict.rows({ query: 'SELECT 1' })).rejects.toMatchObject({ retryable: false })
    expect(server.requests).toHaveLength(0)
    const trusting = openServerTables({ ...settingsFor(credentials), caCertificate: certificate.cert })
    expect(await trusting.rows({ query: 'SELECT 1' })).toEqual([{ n: 1 }])
    await strict.close()
    await trusting.close()
    await server.close()
  })
})

async function selfSigned(): Promise<{ key: string; cert: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'pledgeview-tls-'))
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert, ...subject], {
    stdio: 'ignore',
  })
  const pair = { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') }
  await rm(directory, { recursive: true })
  return pair
}
