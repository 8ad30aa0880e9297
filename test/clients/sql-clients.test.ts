/**
 * Third-party clients do their ordinary work on the data teams' views, logged in as an analyst over the ports that a service
 * opens for them.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { analystUser } from '../../services/clickhouse-server/configuration.ts'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import { migrate } from '../../services/tables/schema/migrate.ts'
import { definerUser } from '../../services/tables/schema/roles.ts'
import {
  askClickHouse,
  type ClickHouse,
  insertJson,
  settingsFor,
  startClickHouse,
} from '../support/clickhouse/clickhouse.ts'
import { publicViews } from '../support/clickhouse/public-views.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { exactColumns, expected, written, wrongFloats } from './campaigns.ts'
import {
  type Client,
  clickHouseConnect,
  clickHouseGo,
  clickHouseJdbc,
  type Job,
  type Seen,
} from './clients.ts'

const { read, views } = defaultDatabases
const downloadMsMax = 360_000
const campaignFloats = ['goal', 'pledged', 'pledged_platform', 'percent']
let clickHouse: ClickHouse

beforeAll(async () => {
  clickHouse = await startClickHouse({ analyst: { password: '' }, nativePort: 0 })
  const tables = openTables(settingsFor(clickHouse))
  await migrate(tables, defaultDatabases, { viewsDefiner: definerUser })
  await tables.close()
  await insertJson(clickHouse, `${read}.campaigns`, written)
})

afterAll(() => clickHouse?.stop())

describe('clickhouse-connect', () => {
  const seen = useClient(clickHouseConnect)
  doesOrdinaryWork(seen)

  test.each(['campaigns', 'frame', 'arrow', 'parquet'] as const)(
    'reads every public campaign exactly, and the floating-point columns as the same numbers: %s',
    form => {
      const read = seen()[form]
      const rows = 'rows' in read ? read.rows : read
      expect(exactColumns(rows)).toEqual(expected)
      expect(wrongFloats(rows, campaignFloats)).toEqual([])
    },
  )

  test('gives a pandas DataFrame with exact decimals and times in UTC, that describes and sums as it is', () => {
    expect(seen().frame.types).toMatchObject({
      title: 'string',
      // Decimal, of Python.
      goal_amount: 'object',
      goal: 'float64',
      backer_count: 'uint64',
      uses_ai: 'bool',
      launch_date: 'datetime64[ms, UTC]',
      created_at: 'datetime64[ms, UTC]',
      rewards: 'object',
    })
    const { described, byCategory } = seen().summary
    expect(described.toSorted()).toEqual(campaignFloats.toSorted())
    const huge = Number('123456789012345678901234567890.1234')
    expect(byCategory).toEqual({ Art: huge, Comics: 10000.07, Games: 4295.6734 })
  })

  test.each(['arrow', 'parquet'] as const)('gives %s without loss of types', form => {
    expect(seen()[form].types).toMatchObject({
      title: 'string',
      category: 'string',
      goal_amount: 'decimal128(38, 4)',
      goal: 'double',
      backer_count: 'uint64',
      uses_ai: 'bool',
      launch_date: 'timestamp[ms, tz=UTC]',
      tags: expect.stringMatching(/^list<\w+: string not null>$/),
      rewards: expect.stringMatching(/^list<\w+: struct<.*amount: decimal128\(38, 4\) not null, .*>/),
    })
  })
})

describe('clickhouse-jdbc', () => {
  const seen = useClient(clickHouseJdbc)
  doesOrdinaryWork(seen)

  test('sees only the views, and answers the additional queries of DBeaver', () => {
    expect(seen().databases).toEqual([views])
    expect(seen().views.toSorted()).toEqual(publicViews)
    const { engines, tables, definition } = seen().dbeaver
    expect(engines).toBeGreaterThan(10)
    expect(tables).toBe(publicViews.length)
    expect(definition).toContain("COMMENT 'Price of the tier, in major units of currency; exact'")
  })

  // The driver sends KILL QUERY, which analysts may not use. A query ends when its connection is closed, or when it exceeds its
  // time limit.
  test('is told that it may not kill a query', () => {
    // The driver reports ClickHouse's error code in the text only.
    expect(seen().cancelled?.message).toContain('Code: 497.')
  })
})

describe('clickhouse-go over the native port', () => {
  const seen = useClient(clickHouseGo)
  doesOrdinaryWork(seen)

  test('cancels a query, which then ends on the server', () => {
    const { query, nextAfterMs } = seen().cancelled
    expect(query?.message).toContain('context canceled')
    // The cancelled query would take 19 s more.
    expect(nextAfterMs).toBeLessThan(15_000)
  })

  // Grafana's deadline is 60 s. The driver turns it into max_execution_time = 65.
  test('may use the deadline that Grafana sets', () => {
    expect(seen().grafana).toBeNull()
  })
})

function doesOrdinaryWork(seen: () => Seen): void {
  test('sees the type of every column, and a comment', async () => {
    const query = `SELECT table AS view, name, type, comment FROM system.columns
                   WHERE database = '${views}' ORDER BY view, position FORMAT JSONEachRow`
    const columns = await askClickHouse(clickHouse, query)
    expect(seen().columns).toEqual(
      columns
        .trim()
        .split('\n')
        .map(line => JSON.parse(line)),
    )
    expect(seen().columns.filter(({ comment }) => comment === '')).toEqual([])
  })

  test('reads every public campaign, reward, category and total, and no others', () => {
    const { campaigns, rewards, categories, totals } = seen()
    expect(campaigns.map(row => row.campaign_id)).toEqual(expected.map(row => row.campaign_id))
    expect(rewards.map(row => row.reward_id)).toEqual(['first', 'second'])
    expect(categories.map(row => row.category)).toEqual(['Art', 'Comics', 'Games'])
    expect(totals).toHaveLength(1)
  })

  test('gets an error when a result is incomplete', () => {
    expect(seen().broken?.message).toContain('it broke')
  })

  test('gets the reason why it may not read a table, and continues within the bounds of settings', () => {
    expect(seen().forbidden).toMatchObject({ code: 497 })
    expect(seen().forbidden?.message).toMatch(/Not enough privileges.*pledgeview_read_1\.campaigns/)
    expect(seen().withinBounds).toBe(1)
  })
}

/** Runs a client once for the suite, and skips the suite if the client is not available. */
function useClient<S extends Seen>(client: Client<S>): () => S {
  let requirement: Requirement
  let seen: S
  beforeAll(async () => {
    requirement = await client.requirement()
    if (requirement.isMet) seen = await client.run(job())
  }, downloadMsMax)
  beforeEach(context => needs(context, requirement))
  return () => seen
}

function job(): Job {
  return {
    host: '127.0.0.1',
    httpPort: Number(new URL(clickHouse.url).port),
    nativePort: clickHouse.nativePort ?? 0,
    user: analystUser,
    database: views,
  }
}
