/**
 * Proves that rows which ClickHouse has set aside are noticed: a server with ClickHouse's defaults starts without them, and
 * then no process of ours writes, and readiness fails.
 */
import { rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runProjectorProcess } from '../../../services/distributed/projector.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { checkParts, partsCheck, RowsSetAside } from '../../../services/tables/broken-parts.ts'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'

const databases = defaultDatabases
// As a server with its default configuration.
const more = { merge_tree: { max_suspicious_broken_parts: 100 } }

describe('a ledger with a part that the server has set aside', () => {
  let directory: TestDirectory
  let clickHouse: ClickHouse
  let tables: Tables

  const start = async () => {
    clickHouse = await startClickHouse({ directory: directory.path, more })
    tables = openTables(settingsFor(clickHouse))
  }
  const stop = async () => {
    await tables.close()
    await clickHouse.stop()
  }

  /** Fills the table with two parts. While the server is down, the first one is damaged. */
  async function setAside(database: string, table: string, insert: (rows: number) => Promise<void>) {
    for (const rows of [5_000, 100]) await insert(rows)
    const [part] = await tables.rows<{ path: string }>({
      query: `SELECT path FROM system.parts WHERE database = '${database}' AND table = '${table}' AND active AND rows = 5000`,
    })
    await stop()
    truncateSync(join(part?.path ?? '', 'data.bin'), 100)
    await start()
  }

  beforeAll(async () => {
    directory = makeTestDirectory()
    await start()
    await migrate(tables, databases)
    await setAside('pledgeview_ledger_1', 'pledge_ledger', async rows => {
      await tables.run({
        query: `INSERT INTO pledgeview_ledger_1.pledge_ledger (campaign_id, pledge_id, version, counts)
                SELECT 'c', toString(number), ${rows}, true FROM numbers(${rows}) SETTINGS async_insert = 0`,
      })
      await expect(checkParts([tables], databases)).resolves.toBeUndefined()
    })
  })

  afterAll(async () => {
    await stop()
    rmSync(directory.path, { recursive: true, force: true })
  })

  test('has fewer rows, and the error names the part and the next command', async () => {
    const rows = await tables.rows({ query: 'SELECT count() AS rows FROM pledgeview_ledger_1.pledge_ledger' })
    expect(rows).toEqual([{ rows: 100 }])
    await expect(checkParts([tables], databases)).rejects.toThrow(RowsSetAside)
    // Another shard is whole.
    const whole = { rows: async () => [] }
    await expect(checkParts([whole, tables], databases)).rejects.toThrow(
      /set aside a part of pledgeview_ledger_1\.pledge_ledger.*broken-on-start.*pledgeview rebuild/,
    )
  })

  test('fails the readiness of a projector, and a projector does not start', async () => {
    expect(await partsCheck([tables], databases)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('pledgeview rebuild'),
    })
    const started = runProjectorProcess({
      config: readConfig({
        PLEDGEVIEW_KAFKA_BROKERS: '127.0.0.1:1',
        PLEDGEVIEW_CLICKHOUSE_URL: clickHouse.url,
        PLEDGEVIEW_CLICKHOUSE_USER: clickHouse.user,
        PLEDGEVIEW_CLICKHOUSE_PASSWORD: clickHouse.password,
        PLEDGEVIEW_BACKER_KEY: '0123456789abcdef'.repeat(4),
        PLEDGEVIEW_KEY_PEPPER: '0123456789abcdef'.repeat(4),
      }),
      logger: pino({ level: 'silent' }),
      signal: AbortSignal.timeout(20_000),
      say: () => {},
    })
    await expect(started).rejects.toThrow(RowsSetAside)
  })

  test('in the base database, which no rebuild makes, can be given up: the printed statement does it', async () => {
    await setAside('pledgeview', 'campaign_days', rows =>
      tables.run({
        query: `INSERT INTO pledgeview.campaign_days (campaign_id) SELECT toString(number) FROM numbers(${rows}) SETTINGS async_insert = 0`,
      }),
    )
    // The part of the ledger is not looked at.
    const base = { ...databases, ledger: 'none' }
    const error = await checkParts([tables], base).catch((error: Error) => error)
    expect(error).toBeInstanceOf(RowsSetAside)
    const { message } = error as Error
    expect(message).not.toContain('pledgeview rebuild')
    const [query = ''] = /ALTER TABLE \S+ DROP DETACHED PART .*$/.exec(message) ?? []
    await tables.run({ query })
    await expect(checkParts([tables], base)).resolves.toBeUndefined()
  })

  test.each([
    ['api_key_ledger', /read the log again with: pledgeview rebuild\. Only then drop the part: ALTER TABLE/],
    ['generation_log', /attach the part again \(.*\), or restore the table from a backup$/],
  ])('in %s of the base database is not given up as one of the history is', async (table, remedy) => {
    const part = { database: 'pledgeview', table, name: 'p', reason: 'broken', path: '', parts: 1 }
    const server = { rows: async <Row>() => [part] as Row[] }
    await expect(checkParts([server], databases)).rejects.toThrow(remedy)
  })

  test('does not open as a data directory either', async () => {
    await stop()
    try {
      await expect(directory.open()).rejects.toThrow(
        /set aside a part of pledgeview_ledger_1\.pledge_ledger.*move it away and start again: the tables are then filled from the event log/,
      )
    } finally {
      await start()
    }
  })
})
