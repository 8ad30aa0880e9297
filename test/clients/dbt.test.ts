/**
 * The dbt package builds its models beside the views and tests both, as a user that may read the views and write only to its own
 * database. The guide's incremental model stays equal to the view. Its freshness check notices that nothing fills the views any more.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { analystUser } from '../../services/clickhouse-server/configuration.ts'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import { migrate } from '../../services/tables/schema/migrate.ts'
import { definerUser } from '../../services/tables/schema/roles.ts'
import { fencesOf, readGuide } from '../guides/blocks.ts'
import { boards, sqlQueries } from '../integration/deploy/board-files.ts'
import {
  askClickHouse,
  type ClickHouse,
  insertJson,
  settingsFor,
  startClickHouse,
} from '../support/clickhouse/clickhouse.ts'
import { makeDataDirectory } from '../support/deployment/service-process.ts'
import { campaignRow } from '../support/query/tables.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { outputOf, path, pythonEnvironment } from './programs.ts'

const { base, read } = defaultDatabases
const project = path('../../contracts/tables/dbt')
const python = pythonEnvironment('dbt-clickhouse', path('dbt/requirements.txt'))
const downloadMsMax = 360_000
// Seconds, on a machine that has nothing else to do.
const dbtMsMax = 180_000
const testMsMax = 2 * dbtMsMax
const user = 'dbt'
// The guide's settings and grants for a user of dbt.
const settings = { max_memory_usage: 4_000_000_000, max_execution_time: 600, max_threads: 2 }
const grants = [
  'GRANT SELECT ON crowdfunding.*',
  'GRANT ALL ON analytics.*',
  'GRANT TABLE ENGINE ON MergeTree',
  'GRANT TABLE ENGINE ON Memory',
]
const day = (text: string) => `${text} 00:00:00.000`
const directory = makeDataDirectory()
let dbtCanRun: Requirement
let clickHouse: ClickHouse

beforeAll(async () => {
  dbtCanRun = await python.requirement()
  if (!dbtCanRun.isMet) return
  copyFileSync(join(project, 'profiles.example.yml'), join(directory.path, 'profiles.yml'))
  const known = { password: '', networks: { ip: '127.0.0.1' }, profile: user, quota: 'default' }
  clickHouse = await startClickHouse({
    analyst: { password: '' },
    moreUsers: {
      profiles: { [user]: settings },
      users: { [user]: { ...known, grants: { query: grants } } },
    },
  })
  const tables = openTables(settingsFor(clickHouse))
  await migrate(tables, defaultDatabases, { viewsDefiner: definerUser })
  await tables.close()
  await insertJson(clickHouse, `${read}.campaigns`, campaigns)
  await insertJson(clickHouse, `${base}.identity`, [
    { setting: 'PLEDGEVIEW_PLATFORM_CURRENCY', fingerprint: 'USD' },
  ])
  await reachFloor('now64(3)')
}, downloadMsMax)

beforeEach(context => needs(context, dbtCanRun))

afterAll(async () => {
  await clickHouse?.stop()
  directory.remove()
})

const campaigns = [
  campaign('a', { status: 'FUNDED', pledged_platform_amount: '100.5', pledge_count: 3 }),
  // A Date ends in 2149.
  campaign('b', {
    status: 'FAILED',
    pledged_platform_amount: '0',
    pledge_count: 0,
    end_date: day('2150-01-01'),
  }),
  campaign('c', { status: 'LIVE', pledged_platform_amount: '7.25', pledge_count: 1 }),
  // The last moment of January: a month in the machine's zone would be February.
  campaign('d', { launch_date: '2026-01-31 23:59:59.999', status: 'CANCELLED' }),
  campaign('e', { category: 'Art', launch_date: null, end_date: null, status: 'FUNDED' }),
  campaign('f', { category: 'Art', launch_date: day('2026-03-01'), status: 'LIVE' }),
]

test('builds its models from the views, and every test of views and models passes', {
  timeout: testMsMax,
}, async () => {
  const printed = await dbt(['build'])
  expect(printed).toMatch(/Done\. PASS=\d\d WARN=0 ERROR=0 SKIP=0/)
  expect(await rowsOf('SELECT * FROM analytics.category_months ORDER BY ALL')).toEqual([
    month(
      'Art',
      '2025-12-01',
      { campaign_count: 1, funded_count: 1, success_rate: 1, pledge_count: 12 },
      275.55,
    ),
    month(
      'Art',
      '2026-03-01',
      { campaign_count: 1, live_count: 1, success_rate: null, pledge_count: 12 },
      275.55,
    ),
    month(
      'Games',
      '2026-01-01',
      { campaign_count: 4, live_count: 1, funded_count: 1, success_rate: 1 / 3, pledge_count: 16 },
      383.3,
    ),
  ])
  const outcomes =
    'campaign_id, is_funded, pledged_platform, average_pledge_platform, launched_on, ended_on, duration_days'
  expect(await rowsOf(`SELECT ${outcomes} FROM analytics.campaign_outcomes ORDER BY campaign_id`)).toEqual([
    outcome('a', { is_funded: true, pledged_platform: 100.5, average_pledge_platform: 33.5 }),
    outcome('b', {
      ...{ pledged_platform: 0, average_pledge_platform: null },
      ...{ ended_on: '2150-01-01', duration_days: 45_290 },
    }),
    outcome('d', { launched_on: '2026-01-31', duration_days: 1 / 86_400_000 }),
    outcome('e', { is_funded: true, launched_on: null, ended_on: null, duration_days: null }),
  ])
  // The models say what their columns mean, as the views do.
  expect(
    await rowsOf("SELECT table, name FROM system.columns WHERE database = 'analytics' AND comment = ''"),
  ).toEqual([])
})

test('asks for a dbt that knows `arguments` of a test, and is run with such a one', () => {
  const [, least = ''] =
    /require-dbt-version: ">=(.*)"/.exec(readFileSync(join(project, 'dbt_project.yml'), 'utf8')) ?? []
  const [, ran = ''] = /^dbt-core==(.*)$/m.exec(readFileSync(path('dbt/requirements.txt'), 'utf8')) ?? []
  const isAtLeast = (version: string, other: string) =>
    version.localeCompare(other, 'en', { numeric: true }) >= 0
  expect([least, ran].filter(version => !isAtLeast(version, '1.10.5'))).toEqual([])
  expect(isAtLeast(ran, least)).toBe(true)
})

test('its sources are the views, no fewer and no others', async () => {
  const views = await rowsOf<{ name: string }>(
    "SELECT name FROM system.tables WHERE database = 'crowdfunding' ORDER BY name",
  )
  const listed = await readYaml('sources.yml', '[t["name"] for t in y["sources"][0]["tables"]]')
  expect(listed.toSorted()).toEqual(views.map(({ name }) => name))
})

test('its exposures are the boards, each with the views that it reads', async () => {
  for (const { name, json } of boards.filter(({ name }) =>
    sqlQueries().some(query => query.name.startsWith(name)),
  )) {
    const board = name.replace('.json', '')
    const read = `[d for e in y["exposures"] if e["name"] == "board_${board}" for d in e["depends_on"]]`
    const named = JSON.stringify(json).matchAll(/crowdfunding\.(\w+)/g)
    const sources = [...new Set([...named].map(([, view]) => `source('crowdfunding', '${view}')`))]
    expect(await readYaml('exposures.yml', read)).toEqual(sources.toSorted())
  }
})

test('the incremental model of the guide equals the view, after a late change and a removal', {
  timeout: 2 * testMsMax,
}, async () => {
  const own = join(directory.path, 'own')
  const copied = async () => {
    await reachFloor('now64(3)')
    await dbt(['run', '--select', 'campaigns_copy'], {}, own)
    const columns = '* EXCEPT goal_platform FROM'
    const copy = await rowsOf(
      `SELECT * EXCEPT copied_as_of FROM (SELECT ${columns} analytics.campaigns_copy) ORDER BY campaign_id`,
    )
    expect(copy).toEqual(await rowsOf(`SELECT ${columns} crowdfunding.campaigns ORDER BY campaign_id`))
    return copy.length
  }
  mkdirSync(join(own, 'models'), { recursive: true })
  writeFileSync(join(own, 'dbt_project.yml'), 'name: own\nprofile: pledgeview\n')
  writeFileSync(join(own, 'packages.yml'), ofGuide('yaml').replace(/(?<=local: ).*/, project))
  writeFileSync(join(own, 'models/campaigns_copy.sql'), ofGuide('jinja'))
  await dbt(['deps'], {}, own)
  // Stamped by a fold that has not ended: rows with earlier stamps may still come.
  await change('early', { updated_at: day('2100-01-01') })
  expect(await copied()).toBe(campaigns.length + 1)
  const [now] = await rowsOf<{ at: string }>('SELECT now64(3) AS at')
  await change('late', { updated_at: now?.at })
  await change('a', { title: 'Another', updated_at: now?.at })
  await change('b', { is_deleted: 1, updated_at: now?.at })
  expect(await copied()).toBe(campaigns.length + 1)
})

test('an analyst may check freshness; it fails if nothing has filled the views for a while', {
  timeout: testMsMax,
}, async () => {
  const asAnalyst = { CLICKHOUSE_USER: analystUser, DBT_SCHEMA: 'crowdfunding' }
  // The tests before may have taken longer than the two minutes after which it warns.
  await reachFloor('now64(3)')
  expect(await dbt(['source', 'freshness'], asAnalyst)).toContain('PASS freshness of crowdfunding.about')
  await askClickHouse(clickHouse, `TRUNCATE TABLE ${read}.watermarks`)
  await reachFloor('now64(3) - INTERVAL 1 HOUR')
  await expect(dbt(['source', 'freshness'], asAnalyst)).rejects.toThrow(
    'ERROR STALE freshness of crowdfunding.about',
  )
})

/** What a Python expression makes of a file `y` of the package. */
async function readYaml(file: string, expression: string): Promise<string[]> {
  const program = `import yaml, json; y = yaml.safe_load(open("${project}/models/${file}")); print(json.dumps(${expression}))`
  return JSON.parse(await outputOf(python.program('python'), ['-c', program]))
}

/** The only block of the guide in this language. */
function ofGuide(language: string): string {
  const blocks = fencesOf(readGuide('contracts/tables/README.md')).filter(
    fence => fence.language === language,
  )
  expect(blocks).toHaveLength(1)
  return blocks[0]?.text ?? ''
}

let folds = 1

/** A new row of a campaign, as the fold writes it. */
function change(id: string, fields: object): Promise<void> {
  return insertJson(clickHouse, `${read}.campaigns`, [campaign(id, { fold_id: ++folds, ...fields })])
}

/** What dbt prints. Throws with the end of it if dbt fails. */
function dbt(
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
  of = project,
): Promise<string> {
  return outputOf(
    python.program('dbt'),
    ['--no-use-colors', ...args, '--project-dir', of, '--profiles-dir', directory.path],
    {
      msMax: dbtMsMax,
      environment: {
        DBT_TARGET_PATH: join(directory.path, 'target'),
        DBT_LOG_PATH: join(directory.path, 'log'),
        CLICKHOUSE_PORT: new URL(clickHouse.url).port,
        DBT_SEND_ANONYMOUS_USAGE_STATS: 'false',
        DO_NOT_TRACK: '1',
        ...more,
      },
    },
  )
}

function reachFloor(moment: string): Promise<string> {
  return askClickHouse(
    clickHouse,
    `INSERT INTO ${read}.watermarks SELECT '', ${moment} SETTINGS async_insert = 0`,
  )
}

async function rowsOf<Row>(query: string): Promise<Row[]> {
  const answer = await askClickHouse(
    clickHouse,
    `${query} SETTINGS output_format_json_quote_64bit_integers = 0 FORMAT JSON`,
  )
  return JSON.parse(answer).data
}

function campaign(id: string, fields: object) {
  return {
    ...campaignRow(id, { fold_id: 1 } as object),
    launch_date: day('2026-01-01'),
    end_date: day('2026-02-01'),
    ...fields,
  }
}

function month(category: string, launch_month: string, counts: object, pledged: number) {
  return {
    category,
    launch_month,
    live_count: 0,
    funded_count: 0,
    ...counts,
    pledged_platform_amount: pledged,
    pledged_platform: pledged,
  }
}

function outcome(campaign_id: string, fields: object) {
  return {
    campaign_id,
    is_funded: false,
    pledged_platform: 275.55,
    average_pledge_platform: 275.55 / 12,
    launched_on: '2026-01-01',
    ended_on: '2026-02-01',
    duration_days: 31,
    ...fields,
  }
}
