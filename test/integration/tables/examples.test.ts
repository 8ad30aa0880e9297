/**
 * Every example of `contracts/tables/examples` runs as the data teams' user, on the demo platform with a history of 40 days, and
 * its answer is what the events say. Each query of the Grafana boards has an answer there, too.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readExamples } from '../../../services/portal/guide/data-examples.ts'
import { createDataPictures } from '../../../services/portal/guide/readings.ts'
import type { Runtime } from '../../../services/runtime/runtime.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { definerUser } from '../../../services/tables/schema/roles.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { type Answer, answers, type Cell } from '../../support/examples/answers.ts'
import { historyAnswers } from '../../support/examples/history-answers.ts'
import { fillHistory } from '../../support/examples/history-rows.ts'
import { dayMs, type ExampleWorld, exampleWorld } from '../../support/examples/world.ts'
import { createIngest, createTestFoldWorker } from '../../support/projector/model-tables.ts'
import { awayFromMidnight } from '../../support/runner/midnight.ts'
import { expandSql, sqlQueries } from '../deploy/board-files.ts'

const campaigns = 300
const eventsPerBatch = 20_000
/** The examples and the boards ask for today. No test may see two days. */
const lastSecondsMs = 90_000

const hex = (text: string) => Buffer.from(text).toString('hex').toUpperCase()
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)

const expected = { ...answers, ...historyAnswers }
let own: OwnTables
let world: ExampleWorld
/** The answers on a platform without pledges. */
const withoutPledges = new Map<string, unknown[][]>()
/** The answers before there is any history but the derived one. */
const onFirstDay = new Map<string, unknown[][]>()

beforeAll(async () => {
  await awayFromMidnight(lastSecondsMs)
  own = await openOwnTables({ analyst: { password: '' } })
  const { tables } = own
  await migrate(tables, defaultDatabases, { viewsDefiner: definerUser })
  await holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
  world = exampleWorld(Date.now(), campaigns)
  const ingest = createIngest(tables, defaultDatabases)
  const { foldWorker } = createTestFoldWorker(tables, defaultDatabases)
  await foldWorker.acquireLeadership()
  await ingest(world.events.filter(({ type }) => type === 'campaign'))
  await foldWorker.fold()
  for (const { name, sql } of readExamples('crowdfunding')) withoutPledges.set(name, await rowsOf(sql))
  for (let first = 0; first < world.events.length; first += eventsPerBatch)
    await ingest(world.events.slice(first, first + eventsPerBatch))
  await foldWorker.fold()
  for (const { name, sql } of readExamples('crowdfunding')) onFirstDay.set(name, await rowsOf(sql))
  await fillHistory(own, defaultDatabases, world)
}, 240_000)
afterAll(() => own?.close())

test('every example has an answer here, and every answer an example', () => {
  expect(readExamples('crowdfunding').map(({ name }) => name)).toEqual(Object.keys(expected).sort())
})

test.each(readExamples('crowdfunding'))('$name: its answer is what the events say', async ({ name, sql }) => {
  const rows = await rowsOf(sql)
  const answer = expected[name]?.(world) ?? []
  expect(rows.length).toBeGreaterThan(0)
  expect(rows).toEqual(inDigitsOf(rows, answer))
})

test('no example divides by zero on a platform without pledges', () => {
  expect(withoutPledges.get('12-share-of-the-largest')).toHaveLength(5)
  for (const [name, rows] of withoutPledges)
    expect(
      rows.flat().filter(cell => /^-?(nan|inf)$/.test(String(cell))),
      name,
    ).toEqual([])
})

test('the questions about the history have an answer on the first day of a new installation, too', () => {
  for (const name of Object.keys(historyAnswers)) expect(onFirstDay.get(name), name).not.toEqual([])
})

async function rowsOf(sql: string): Promise<unknown[][]> {
  // Without this setting NaN would look like NULL.
  const parameters = { output_format_json_quote_denormals: 1 }
  const url = own.clickHouse.url
  const { status, text } = await askAsAnalyst(url, `${sql}\nFORMAT JSONCompactEachRow`, { parameters })
  expect({ status, text: status === 200 ? '' : text }).toEqual({ status: 200, text: '' })
  const lines = text.split('\n').filter(line => line !== '')
  return lines.map(line => JSON.parse(line) as unknown[])
}

test('the pictures of the portal show the same', async () => {
  const warnings: string[] = []
  const logger = { warn: (message: string) => warnings.push(message) } as unknown as Runtime['logger']
  const time = { monotonicMs: () => performance.now() }
  const read = createDataPictures({ tables: own.tables, databases: defaultDatabases }, { ...time, logger })
  const { about, funding, categories, campaigns } = await read()
  expect(warnings).toEqual([])
  expect(about).toMatchObject({ currency: 'USD', campaigns: world.shown.length })
  expect(about?.history_from).toBe(new Date((world.days[0] ?? 0) * dayMs).toISOString().slice(0, 10))
  const days = historyAnswers['17-funding-by-day']?.(world) ?? []
  const points = (funding ?? []).map(({ day, pledges, raised }) => [day, pledges, raised])
  expect(points).toEqual(
    inDigitsOf(
      points,
      days.map(day => day.slice(0, 3)),
    ),
  )
  const byCategory = answers['03-success-rate-by-category']?.(world) ?? []
  expect(categories?.map(({ category, ended, funded }) => [category, ended, funded]).sort()).toEqual(
    byCategory.map(row => row.slice(0, 3)).sort(),
  )
  const top = world.shown.toSorted((a, b) => b.platform - a.platform).slice(0, 10)
  expect(campaigns?.map(({ title, raised }) => [title, raised])).toEqual(
    top.map(({ title, platform }) => [title, platform]),
  )
})

/**
 * The answer with the digits of the query. A rounded cell that differs by no more than half of its last digit takes the query's
 * value: the sums of the server have another order.
 */
function inDigitsOf(rows: readonly (readonly unknown[])[], answer: Answer): unknown[][] {
  return answer.map((row, index) => row.map((cell, column) => cellLike(rows[index]?.[column], cell)))
}

function cellLike(found: unknown, cell: Cell): unknown {
  if (cell === null || typeof cell !== 'object') return cell
  const { value, digits } = cell
  const isClose = typeof found === 'number' && Math.abs(found - value) <= 0.5 * 10 ** -digits + 1e-6
  return isClose ? found : value
}

describe('the queries of the Grafana boards', () => {
  interface Read {
    meta: { name: string; type: string }[]
    data: unknown[][]
  }

  async function ask(text: string, campaign?: string): Promise<Read> {
    const live = world.shown.find(({ status, tiers }) => status === 'LIVE' && tiers.length > 0)
    const sql = expandSql(text, {
      from: day(world.now - 30 * dayMs),
      to: day(world.now),
      variables: {
        category: await options('category'),
        campaign: [hex(campaign ?? live?.id ?? '')],
      },
    })
    const { status, text: body } = await askAsAnalyst(own.clickHouse.url, `${sql}\nFORMAT JSONCompact`)
    expect({ status, error: status === 200 ? '' : body }).toEqual({ status: 200, error: '' })
    return JSON.parse(body) as Read
  }

  /** The values of a variable. */
  async function options(name: string): Promise<string[]> {
    const query = sqlQueries().find(one => one.name.endsWith(`the variable ${name}`))?.text ?? ''
    const { text } = await askAsAnalyst(own.clickHouse.url, `${query}\nFORMAT JSONCompact`)
    return (JSON.parse(text) as Read).data.map(([value]) => String(value))
  }

  test.each(sqlQueries())('$name', async ({ text, isTimeSeries }) => {
    const { meta, data } = await ask(text)
    expect(data.length).toBeGreaterThan(0)
    // Grafana cannot draw a decimal.
    for (const { type } of meta) expect(type).not.toContain('Decimal')
    if (!isTimeSeries) return
    expect(meta[0]?.type).toBe('Date')
    const days = data.map(([first]) => String(first))
    expect(days).toEqual(days.toSorted())
  })

  test('the sum of the platform is that of its events', async () => {
    const { text } = sqlQueries().find(({ name }) => name === 'platform.json: Raised') ?? { text: '' }
    const { data } = await ask(text)
    const raised = world.shown.reduce((sum, { platform }) => sum + platform, 0)
    expect(Number(data[0]?.[0])).toBeCloseTo(raised, 1)
  })

  test('the funding by day has every category of those days, also one that no campaign has now', async () => {
    const { text } = sqlQueries().find(({ name }) => name.endsWith('by day and category')) ?? { text: '' }
    const drawn = new Set((await ask(text)).data.map(([, category]) => category))
    const known = new Set([...world.history.values()].flatMap(shown => [...shown.values()]))
    expect(world.shown.map(({ category }) => category)).not.toContain('Refunded')
    expect(drawn).toEqual(new Set([...known].map(({ category }) => category)))
  })

  test('names that producers choose are values, and never a part of the statement', async () => {
    const { text } = sqlQueries().find(({ name }) => name === 'campaign.json: Backers') ?? { text: '' }
    expect((await ask(text)).data).toHaveLength(1)
    expect((await ask(text, "x\\' OR 1 = 1 --")).data).toEqual([])
    // Grafana doubles the quotes of a value, and ClickHouse reads its backslashes.
    const values = [...(await options('campaign')), ...(await options('category'))]
    expect(values.length).toBeGreaterThan(10)
    for (const value of values) expect(value).toMatch(/^[0-9A-F]+$/)
  })
})
