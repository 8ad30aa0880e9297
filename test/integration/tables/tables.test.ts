import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { idChunks } from '../../../services/tables/clickhouse/statements.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { migrate, readMigrations } from '../../../services/tables/schema/migrate.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { openssl } from '../../support/kafka/certificate.ts'
import { needs } from '../../support/runner/requirements.ts'
import { answers, startMisbehavingServer } from '../../support/servers/misbehaving-server.ts'
import { clickHouseService } from '../../support/services/clickhouse.ts'
import { useService } from '../../support/services/test-service.ts'
import { describeTables } from './tables.conformance.ts'

const server = useService(clickHouseService)

describeTables('ClickHouse over HTTP', async () => {
  const tables = openTables(settingsFor(server()))
  return { tables, dispose: tables.close }
})

describe('ClickHouse over HTTP', () => {
  let clickHouse: ClickHouse
  let tables: Tables

  beforeAll(async () => {
    clickHouse = await startClickHouse()
    tables = openTables(settingsFor(clickHouse))
  })

  afterAll(async () => {
    await tables.close()
    await clickHouse.stop()
  })

  test('takes the migrations', async () => {
    expect(await migrate(tables, defaultDatabases)).toEqual(
      readMigrations(defaultDatabases).map(migration => migration.name),
    )
    expect(await migrate(tables, defaultDatabases)).toEqual([])
  })

  test('takes as many long ids in one parameter as a server accepts by default', async () => {
    const all = Array.from({ length: 1_000 }, (_, n) => `${n}'\\`.padStart(256, 'é'))
    const [ids = []] = idChunks(all, all.length)
    expect(ids.length).toBeGreaterThan(100)
    const [row] = await tables.rows<{ ids: string[] }>({
      query: 'SELECT {ids:Array(String)} AS ids',
      query_params: { ids },
    })
    expect(row?.ids).toEqual(ids)
  })

  test('keeps a statement that works for longer than it may be silent', async () => {
    // Shorter than the statements, but longer than a busy machine stands still.
    const impatient = openTables({ ...settingsFor(clickHouse), silenceMsMax: 3_000 })
    await impatient.run({ query: 'CREATE TABLE slow (n UInt8) ENGINE = MergeTree ORDER BY n' })
    const slowly = 'FROM numbers(60) SETTINGS max_block_size = 1, async_insert = 0'
    const late = impatient.run({ query: `SELECT throwIf(sleepEachRow(0.1) = 0 AND number = 55) ${slowly}` })
    await Promise.all([
      impatient.run({ query: `INSERT INTO slow SELECT sleepEachRow(0.1) ${slowly}` }),
      expect(late).rejects.toMatchObject({
        type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
        retryable: false,
      }),
    ])
    expect(await tables.rows({ query: 'SELECT count() AS rows FROM slow' })).toEqual([{ rows: 60 }])
    await impatient.close()
  })

  test('refuses to write when rows are requested', async () => {
    await tables.run({ query: 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n' })
    const written = tables.rows({ query: 'INSERT INTO kept SELECT 1' })
    await expect(written).rejects.toMatchObject({ type: 'READONLY', retryable: false })
    expect(await tables.rows({ query: 'SELECT n FROM kept' })).toEqual([])
  })

  test('says that credentials are wrong, without saying them', async () => {
    const stranger = openTables({ ...settingsFor(clickHouse), password: 'wrong-password' })
    const refused = stranger.run({ query: 'SELECT 1' })
    await expect(refused).rejects.toMatchObject({ type: 'AUTHENTICATION_FAILED', retryable: false })
    await expect(refused).rejects.not.toThrow('wrong-password')
    await stranger.close()
  })

  test('is there again after a server that was killed comes back, with what was acknowledged', async () => {
    const first = await startClickHouse()
    const { port } = new URL(first.url)
    const lasting = openTables(settingsFor(first))
    await lasting.run({ query: 'CREATE TABLE kept (n UInt32) ENGINE = MergeTree ORDER BY n' })
    await lasting.run({ query: 'INSERT INTO kept SELECT 1' })
    await first.kill()
    await expect(lasting.rows({ query: 'SELECT n FROM kept' })).rejects.toMatchObject({ retryable: true })
    const second = await startClickHouse({ directory: first.directory, httpPort: Number(port) })
    expect(await lasting.rows({ query: 'SELECT n FROM kept' })).toEqual([{ n: 1 }])
    await lasting.close()
    await second.stop()
    await first.stop()
  })
})

describe('TLS', () => {
  test('a server whose authority is not known is not talked to; one whose authority is given, is', async context => {
    needs(context, openssl)
    const certificate = await selfSigned()
    const server = await startMisbehavingServer([answers('{"n":1}\n')], certificate)
    const credentials = { url: server.url, user: 'u', password: 'p' }
    const strict = openTables(settingsFor(credentials))
    await expect(strict.rows({ query: 'SELECT 1' })).rejects.toMatchObject({ retryable: false })
    expect(server.requests).toHaveLength(0)
    const trusting = openTables({ ...settingsFor(credentials), caCertificate: certificate.cert })
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
