/**
 * The Grafana boards: each query of ClickHouse runs on the demo platform as the data teams' user and has an answer, and each
 * query of Prometheus is valid and asks for metrics that the program has. board-types.test.ts checks the files themselves.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { migrate } from '../../../services/tables/schema/migrate.ts'
import { definerUser } from '../../../services/tables/schema/roles.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { fillHistory } from '../../support/examples/history-rows.ts'
import { dayMs, type ExampleWorld, exampleWorld } from '../../support/examples/world.ts'
import { idleGauges } from '../../support/projector/gauges.ts'
import { createIngest, createTestFoldWorker } from '../../support/projector/model-tables.ts'
import { needs } from '../../support/runner/requirements.ts'
import { expandPromQl, expandSql, promQueries, sqlQueries } from './board-files.ts'

const campaigns = 60
/** The boards show today. No test may see two days. */
const lastSecondsMs = 60_000
const hex = (text: string) => Buffer.from(text).toString('hex').toUpperCase()
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)

describe('the queries of ClickHouse', () => {
  let own: OwnTables
  let world: ExampleWorld

  beforeAll(async () => {
    const left = dayMs - (Date.now() % dayMs)
    if (left < lastSecondsMs) await sleep(left)
    own = await openOwnTables({ analyst: { password: '' } })
    const { tables } = own
    await migrate(tables, defaultDatabases, { viewsDefiner: definerUser })
    await holdTablesIdentity(tables, defaultDatabases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
    world = exampleWorld(Date.now(), campaigns)
    await createIngest(tables, defaultDatabases)(world.events)
    const { foldWorker } = createTestFoldWorker(tables, defaultDatabases)
    await foldWorker.acquireLeadership()
    await foldWorker.fold()
    await fillHistory(own, defaultDatabases, world)
  }, 240_000)
  afterAll(() => own?.close())

  interface Answer {
    meta: { name: string; type: string }[]
    data: unknown[][]
  }

  async function ask(text: string, campaign?: string): Promise<Answer> {
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
    return JSON.parse(body) as Answer
  }

  /** The values of a variable. */
  async function options(name: string): Promise<string[]> {
    const query = sqlQueries().find(one => one.name.endsWith(`the variable ${name}`))?.text ?? ''
    const { text } = await askAsAnalyst(own.clickHouse.url, `${query}\nFORMAT JSONCompact`)
    return (JSON.parse(text) as Answer).data.map(([value]) => String(value))
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

describe('the queries of Prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-boards-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  const promtool = {
    isMet: spawnSync('promtool', ['--version']).status === 0,
    reason: 'promtool is not installed (Debian: prometheus)',
  }

  async function namesOfMetrics(): Promise<Set<string>> {
    const metrics = createMetrics()
    idleGauges({ metrics })
    const known = await metrics.registry.getMetricsAsJSON()
    return new Set(
      known.flatMap(({ name, type }) =>
        type === 'histogram' ? ['bucket', 'sum', 'count'].map(part => `${name}_${part}`) : [name],
      ),
    )
  }

  test('those of the boards and of the alert rules ask for metrics that the program has', async () => {
    const rules = new URL('../../../deploy/alerts/pledgeview.rules.yml', import.meta.url)
    const texts = [...promQueries().map(({ text }) => text), readFileSync(rules, 'utf8')]
    const asked = texts.flatMap(
      text => text.match(/\b(?:pledgeview|process|nodejs)_[a-z0-9_]+(?=[{[)\s,<>=]|$)/gm) ?? [],
    )
    expect(new Set(asked).size).toBeGreaterThan(25)
    const there = await namesOfMetrics()
    expect([...new Set(asked)].filter(name => !there.has(name))).toEqual([])
  })

  test('are valid', context => {
    needs(context, promtool)
    const rules = promQueries()
      .filter(({ text }) => !text.startsWith('label_values('))
      .map(({ text }, index) => ({ record: `board:query:${index}`, expr: expandPromQl(text) }))
    expect(rules.length).toBeGreaterThan(30)
    for (const { expr } of rules) expect(expr).not.toContain('$')
    const file = join(folder, 'rules.yml')
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'boards', rules }] }))
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
    expect({ status, errors: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, errors: '' })
  })
})
