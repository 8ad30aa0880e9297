/** The view `about` says what fills the views and how current they are. An analyst can look up what every view and column means. */
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDataDirectory, readSecrets } from '../../../services/embedded/data-directory.ts'
import { type EmbeddedModel, openEmbeddedModel } from '../../../services/embedded/model.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { programVersion } from '../../../services/runtime/program-version.ts'
import { readPublicViews } from '../../../services/tables/schema/public-views.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { freeDoor, makeTestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { publicViews } from '../../support/clickhouse/public-views.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../../support/events/sample-events.ts'
import { watermarkIn } from '../../support/projector/positions.ts'

interface About {
  version: string
  platform_currency: string
  /** Unix ms. */
  as_of: number
  freshness_seconds: number
  history_from: string | null
  campaigns: number
}

const directory = makeTestDirectory()
const config = readConfig({ PLEDGEVIEW_PLATFORM_CURRENCY: 'KWD' })

afterAll(() => directory.remove())

describe('before any process has filled the tables', () => {
  test('about has one row, which promises nothing', async () => {
    readSecrets(openDataDirectory(directory.path), config)
    const { clickHouse, close } = await directory.open()
    const [about, ...others] = await readAbout(clickHouse.url)
    await close()
    expect(others).toEqual([])
    expect(about).toMatchObject({
      version: '',
      platform_currency: '',
      as_of: 0,
      campaigns: 0,
      history_from: null,
    })
    // So whoever watches the freshness notices.
    expect(about?.freshness_seconds).toBeGreaterThan(1e9)
  })
})

describe('while a process fills the tables', () => {
  let model: EmbeddedModel

  beforeAll(async () => {
    model = await openEmbeddedModel({
      directory: openDataDirectory(directory.path),
      config,
      sql: freeDoor,
      metrics: createMetrics(),
      logger: pino({ level: 'silent' }),
    })
    await model.writer.append([
      newRecordOf(campaignEvent({ campaign_id: 'a' })),
      newRecordOf(campaignEvent({ campaign_id: 'b', status: 'DRAFT' })),
      newRecordOf(pledgeEvent({ campaign_id: 'a', pledge_id: 'p', amount_minor: 1_234_567 })),
    ])
    await model.whenDrained()
  })

  afterAll(() => model?.close())

  test('about has one row, with the version of the program, the currency and the number of public campaigns', async () => {
    const rows = await readAbout(model.clickHouse.url)
    expect(rows).toEqual([
      expect.objectContaining({ version: programVersion, platform_currency: 'KWD', campaigns: 1 }),
    ])
  })

  test('as_of moves on although nothing changes, and freshness_seconds is its age', async () => {
    const first = await aboutNow(model)
    await expect.poll(async () => (await aboutNow(model)).as_of).toBeGreaterThan(first.as_of + 1_000)
    const before = Date.now()
    const { as_of, freshness_seconds } = await aboutNow(model)
    const readAt = as_of + freshness_seconds * 1_000
    expect(readAt).toBeGreaterThan(before - 50)
    expect(readAt).toBeLessThan(Date.now() + 50)
  })

  test('as_of is the watermark that lists show', async () => {
    const both = async () => [(await aboutNow(model)).as_of, await watermarkIn(model)]
    await expect.poll(both).toSatisfy(([asOf, listed]) => asOf === listed)
  })

  test('an analyst finds what every view and every column means in system.tables and system.columns', async () => {
    const { url } = model.clickHouse
    const views = await rowsOf<{ name: string; comment: string }>(
      url,
      "SELECT name, comment FROM system.tables WHERE database = 'crowdfunding' ORDER BY name",
    )
    expect(views.map(({ name }) => name)).toEqual(publicViews)
    const columns = await rowsOf<{ table: string; name: string; type: string; comment: string }>(
      url,
      "SELECT table, name, type, comment FROM system.columns WHERE database = 'crowdfunding' ORDER BY table, position",
    )
    const described = views.map(view => ({
      ...view,
      columns: columns.filter(({ table }) => table === view.name).map(({ table: _, ...column }) => column),
    }))
    // The data contract says the same.
    expect(described).toEqual(readPublicViews())
    expect(new Set(columns.map(({ table }) => table))).toEqual(new Set(publicViews))
    expect(columns.filter(({ type }) => /DateTime(?!64\(3, 'UTC'\))/.test(type))).toEqual([])
    // Many tools cannot sum a Decimal, so a floating-point number is beside each.
    const count = (kind: string, view: string) =>
      columns.filter(({ table, type }) => table === view && type.includes(kind)).length
    for (const view of publicViews)
      expect(count('Float64', view), view).toBeGreaterThanOrEqual(count('Decimal', view))
  })

  test('the floating-point numbers are the nearest to the exact ones', async () => {
    const [row] = await rowsOf<Record<string, number>>(
      model.clickHouse.url,
      `SELECT c.pledged_platform = toFloat64(c.pledged_platform_amount) AS campaign, c.pledged = toFloat64(c.pledged_amount) AS own,
         c.goal = toFloat64(c.goal_amount) AS goal, c.percent = toFloat64(c.percent_funded) AS percent,
         (SELECT raised = toFloat64(total_raised) FROM crowdfunding.platform_totals) AS platform,
         (SELECT pledged_platform = toFloat64(pledged_platform_amount) FROM crowdfunding.categories) AS category, c.pledged AS pledged
       FROM crowdfunding.campaigns AS c WHERE campaign_id = 'a'`,
    )
    expect(row).toMatchObject({ campaign: 1, own: 1, goal: 1, percent: 1, platform: 1, category: 1 })
    expect(row?.pledged).toBeGreaterThan(12_345)
  })
})

async function aboutNow(model: EmbeddedModel): Promise<About> {
  const [about] = await readAbout(model.clickHouse.url)
  if (about === undefined) throw new Error('about has no row')
  return about
}

function readAbout(url: string): Promise<About[]> {
  return rowsOf<About>(
    url,
    'SELECT * REPLACE (toUnixTimestamp64Milli(as_of) AS as_of) FROM crowdfunding.about',
  )
}

/** The answer to an analyst's question. */
async function rowsOf<Row>(url: string, query: string): Promise<Row[]> {
  const parameters = { output_format_json_quote_64bit_integers: 0 }
  const { status, text } = await askAsAnalyst(url, `${query} FORMAT JSON`, { parameters })
  expect(status, text).toBe(200)
  return JSON.parse(text).data
}
