/**
 * Proves that a data directory of an earlier Pledgeview, which ran ClickHouse in its own process, keeps working. Its views read
 * as a user that has no rights now, it does not record how backers are hashed, and other accounts may read its files.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { openDataDirectory } from '../../../services/local/data-directory.ts'
import { type EmbeddedModel, openEmbeddedModel } from '../../../services/local/model.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import type { Tables } from '../../../services/tables/port.ts'
import { encodeRows } from '../../../services/tables/row-binary.ts'
import { askAsAnalyst } from '../../support/analyst.ts'
import { freeDoor, makeTestDirectory, type TestDirectory } from '../../support/embedded-tables.ts'
import { awayFromMidnight } from '../../support/midnight.ts'
import { privateViews, publicViews } from '../../support/public-views.ts'
import { campaignEvent, newRecordOf, pledgeEvent, smallWorld } from '../../support/sample-events.ts'

const script = new URL('../../support/in-process-tables.ts', import.meta.url).pathname
const world: ChangeEvent[] = [
  ...smallWorld(),
  campaignEvent({ campaign_id: 'c' }),
  pledgeEvent({ campaign_id: 'c', pledge_id: 'p1', backer_id: 'one' }),
  pledgeEvent({ campaign_id: 'c', pledge_id: 'p2', backer_id: 'two' }),
]

// Tables that are there before the first start have no secrets file.
const secrets = { PLEDGEVIEW_KEY_PEPPER: 'a'.repeat(64), PLEDGEVIEW_BACKER_KEY: 'b'.repeat(64) }

describe('a directory that in-process ClickHouse wrote', () => {
  let directory: TestDirectory
  let before: Record<string, unknown>

  beforeEach(async () => {
    // The views of the history have a row for each day, and their rows are compared.
    await awayFromMidnight(90_000)
    directory = makeTestDirectory()
    await holdEarlierHash()
    const model = await open()
    await model.writer.append(world.map(newRecordOf))
    await model.whenDrained()
    before = await contentOf(model.tables)
    const rowsDirectory = await exportRows(model)
    await model.close()

    const tablesDirectory = join(directory.path, 'tables')
    rmSync(tablesDirectory, { recursive: true })
    rmSync(join(directory.path, 'clickhouse'), { recursive: true })
    execFileSync(process.execPath, [script, tablesDirectory, rowsDirectory], { stdio: 'pipe' })
    rmSync(rowsDirectory, { recursive: true })
    chmodSync(tablesDirectory, 0o755)
  })

  afterEach(() => directory.remove())

  test('has the same campaigns, pledges and keys, with the same stamps', async () => {
    const model = await open()
    expect(await contentOf(model.tables)).toEqual(before)
    await model.whenDrained()
    expect(await contentOf(model.tables)).toEqual(before)
    await model.close()
  })

  test('shows analysts its views, which now read as the definer, and no other tables', async () => {
    const model = await open()
    for (const view of publicViews) {
      const { status, text } = await askAsAnalyst(model.clickHouse.url, `SELECT * FROM crowdfunding.${view}`)
      expect(status, text).toBe(200)
    }
    const { text } = await askAsAnalyst(model.clickHouse.url, 'SELECT * FROM pledgeview_read_1.campaigns')
    expect(text).toContain('ACCESS_DENIED')
    const definitions = await model.tables.rows<{ query: string }>({
      query:
        "SELECT create_table_query AS query FROM system.tables WHERE engine = 'View' AND database IN ('pledgeview', 'crowdfunding')",
    })
    expect(definitions).toHaveLength(publicViews.length + privateViews.length)
    for (const { query } of definitions) expect(query).toContain('DEFINER = pledgeview_definer')
    await model.close()
  })

  test('accepts new events, and counts an earlier backer only once', async () => {
    const model = await open()
    const more = [
      pledgeEvent({ campaign_id: 'c', pledge_id: 'p3', backer_id: 'two' }),
      pledgeEvent({ campaign_id: 'c', pledge_id: 'p4', backer_id: 'three' }),
      campaignEvent({ campaign_id: 'd' }),
    ]
    await model.writer.append(more.map(newRecordOf))
    await model.whenDrained()
    const counted =
      'SELECT campaign_id, pledge_count, backer_count FROM crowdfunding.campaigns ORDER BY campaign_id'
    expect(await model.tables.rows({ query: counted })).toEqual([
      expect.objectContaining({ campaign_id: 'a' }),
      { campaign_id: 'c', pledge_count: 4, backer_count: 3 },
      { campaign_id: 'd', pledge_count: 0, backer_count: 0 },
    ])
    await model.close()
  })

  test('is private to its account from then on, and opens again', async () => {
    await (await open()).close()
    expect(lstatSync(join(directory.path, 'tables')).mode & 0o777).toBe(0o700)
    const model = await open()
    expect(await contentOf(model.tables)).toEqual(before)
    await model.close()
  })

  function open(): Promise<EmbeddedModel> {
    return openEmbeddedModel({
      directory: openDataDirectory(directory.path),
      config: readConfig(secrets),
      sql: freeDoor,
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
    })
  }

  /** Pledges must be hashed as they were then. */
  async function holdEarlierHash(): Promise<void> {
    const { tables, close } = await directory.open()
    const columns = ['setting', 'fingerprint'].map(name => ({ name, type: 'String' }))
    const rows = encodeRows(columns, [['backer_hash', 'sha3-256']])
    await tables.insert({ table: 'pledgeview.identity', columns, rows })
    await close()
  }

  /** Every row of every table, except tables that the earlier version did not have. */
  async function exportRows({ tables, clickHouse }: EmbeddedModel): Promise<string> {
    const path = join(directory.path, 'rows')
    mkdirSync(path)
    const names = await tables.rows<{ table: string }>({
      // Another name than the column's, which would stand for it in the condition.
      query: `SELECT concat(database, '.', name) AS table FROM system.tables
              WHERE database = 'pledgeview' AND engine LIKE '%MergeTree' AND name NOT IN ('identity', 'migrations')`,
    })
    for (const { table } of names) {
      const query = encodeURIComponent(`SELECT * FROM ${table} FORMAT Native`)
      const response = await fetch(`${clickHouse.url}/?query=${query}`, {
        headers: { 'X-ClickHouse-User': clickHouse.user, 'X-ClickHouse-Key': clickHouse.password },
      })
      expect(response.status).toBe(200)
      writeFileSync(join(path, table), Buffer.from(await response.arrayBuffer()))
    }
    expect(existsSync(join(path, 'pledgeview_ledger_1.pledge_ledger'))).toBe(true)
    expect(existsSync(join(path, 'pledgeview.identity'))).toBe(false)
    return path
  }
})

/** The content of the public views, and what the tables record of pledges and keys. */
async function contentOf(tables: Tables): Promise<Record<string, unknown>> {
  const queries = [
    // `about` tells the time.
    ...publicViews
      .filter(view => view !== 'about')
      .map(view => `SELECT * FROM crowdfunding.${view} ORDER BY ALL`),
    'SELECT * FROM pledgeview_ledger_1.pledge_ledger FINAL ORDER BY campaign_id, pledge_id',
    'SELECT * FROM pledgeview_ledger_1.campaign_ledger FINAL ORDER BY campaign_id',
    'SELECT * FROM pledgeview.api_keys ORDER BY ALL',
  ]
  const content: Record<string, unknown> = {}
  for (const query of queries) content[query] = await tables.rows({ query })
  return content
}
