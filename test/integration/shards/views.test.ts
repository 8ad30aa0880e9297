/**
 * The views of a cluster, on two servers: with the rights of its role, each user reads there what it reads on one server,
 * and nothing else. And `migrate`: each server gets its own tables, also one that was away or is new, and nothing is made where something
 * is missing.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readExamples } from '../../../services/portal/guide/data-examples.ts'
import { defaultDatabases, generationOf } from '../../../services/tables/generation-log.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { holdTablesIdentity } from '../../../services/tables/schema/identity.ts'
import { checkMigrated, createGeneration, migrate } from '../../../services/tables/schema/migrate.ts'
import { onEveryShard } from '../../../services/tables/shards.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'
import { privateViews, publicViews } from '../../support/clickhouse/public-views.ts'
import { readableTables } from '../../support/clickhouse/readable-tables.ts'
import {
  cluster,
  type ShardServers,
  type ShardUser,
  shardUsers,
  startShards,
} from '../../support/clickhouse/shards.ts'
import { dayMs, type ExampleWorld, exampleWorld } from '../../support/examples/world.ts'
import { createIngest, createTestFoldWorker } from '../../support/projector/model-tables.ts'
import { awayFromMidnight } from '../../support/runner/midnight.ts'
import { expandSql, sqlQueries } from '../deploy/board-files.ts'

const servers = [0, 1]
const campaigns = 90
const { base, ledger, read, views } = defaultDatabases
const own = [base, ledger, read].flatMap(name => [name, `${name}_all`])
const parts = `${views}_parts`
/** What a query needs to read a view with a parameter. */
const called = (name: string) => (name === 'campaign_by_slug' ? `${name}(slug = 'slug')` : name)

// When they were folded differs.
const momentsOfFold = ['updated_at', 'as_of', 'freshness_seconds', 'last_fold_at']

let one: OwnTables
let shards: ShardServers
let world: ExampleWorld
let aboutNothing: unknown[]

beforeAll(async () => {
  await awayFromMidnight(120_000)
  ;[one, shards] = await Promise.all([openOwnTables(), startShards(servers.length)])
  await migrate(one.tables, defaultDatabases)
  world = exampleWorld(Date.now(), campaigns)
  aboutNothing = await rowsOf(as('pledgeview_analyst'), `SELECT * FROM ${views}.about`)
  await Promise.all([
    fill(one.tables, defaultDatabases, [{ tables: one.tables, databases: defaultDatabases }]),
    fill(shards.tables, shards.databases, shards.shards),
  ])
})

afterAll(async () => {
  await Promise.all([one?.close(), shards?.stop()])
})

// Each server has to answer for all.
const askers: Readonly<Record<ShardUser, number>> = {
  pledgeview_analyst: 0,
  pledgeview_query: 1,
  pledgeview_portal: 1,
}

test.each(publicViews)('the view %s has for every user the rows that it has on one server', async view => {
  const expected = await contentOf(one.tables, view)
  expect(expected.length).toBeGreaterThan(0)
  for (const user of shardUsers) expect(await contentOf(as(user), view), user).toEqual(expected)
})

test.each([...readExamples(views).map(({ name, sql }) => ({ name, text: sql })), ...sqlQueries()])(
  'is not refused on shards: $name',
  async ({ text }) => {
    const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
    const hex = (names: string[]) => names.map(name => Buffer.from(name).toString('hex').toUpperCase())
    const query = expandSql(text, {
      from: day(world.now - 30 * dayMs),
      to: day(world.now),
      variables: {
        category: hex(world.shown.map(({ category }) => category)),
        campaign: hex(world.shown.slice(0, 1).map(({ id }) => id)),
      },
    })
    const [found, expected] = await Promise.all([
      rowsOf(as('pledgeview_analyst'), query),
      rowsOf(one.tables, query),
    ])
    expect(found).toHaveLength(expected.length)
  },
)

test('the view about can be read before there is a history, and says so', () => {
  expect(aboutNothing).toMatchObject([{ history_kept_from: null, history_note: 'There is no history yet' }])
})

test('every shard has a part of the campaigns', async () => {
  const counts = await Promise.all(
    shards.shards.map(({ tables }) =>
      rowsOf<{ n: number }>(tables, `SELECT count() AS n FROM ${parts}.campaigns`),
    ),
  )
  expect(counts.map(([row]) => row?.n ?? 0).filter(n => n > 0)).toHaveLength(servers.length)
  expect(counts.reduce((sum, [row]) => sum + (row?.n ?? 0), 0)).toBe(world.shown.length)
})

test('people counted on other shards than the sums are an error, never a smaller total', async () => {
  const table = `${base}_all.shard_backers`
  const { tables } = shards.shards[0] as Shard
  await tables.run({ query: `DROP TABLE ${table}` })
  await tables.run({ query: `CREATE VIEW ${table} AS SELECT * FROM ${base}.shard_backers` })
  const totals = as('pledgeview_analyst').rows({
    query: `SELECT total_backers FROM ${views}.platform_totals`,
  })
  await expect(totals).rejects.toThrow('have different shards in remote_servers')
  await shards.migrate()
})

test('the columns, their types and all comments are those of one server', async () => {
  const described = `SELECT table, name, type, comment FROM system.columns WHERE database = '${views}' ORDER BY table, position`
  const comments = `SELECT name, comment FROM system.tables WHERE database = '${views}' ORDER BY name`
  for (const query of [described, comments])
    expect(await rowsOf(shards.tables, query)).toEqual(await rowsOf(one.tables, query))
})

test('a page reads the rows of its campaigns, not those of all shards', async () => {
  const ids = world.shown.slice(0, 3).map(({ id }) => id)
  const plan = await rowsOf<{ explain: string }>(
    as('pledgeview_query'),
    `EXPLAIN indexes = 1, distributed = 1 SELECT * FROM ${read}_all.campaign_pages WHERE campaign_id IN ('${ids.join("','")}')`,
  )
  const text = plan.map(({ explain }) => explain).join('\n')
  expect(text).toContain('campaign_id in 3-element set')
})

describe('the rights', () => {
  test.each(shardUsers)('of %s are the views and its own tables, and nothing else', async user => {
    const ofEachShard = ['campaign_rows', 'campaign_slugs', 'shard_watermark']
    const readable = [...readableTables[user], ...(user === 'pledgeview_query' ? ofEachShard : [])]
    const known = await rowsOf<{ database: string; name: string }>(
      shards.tables,
      `SELECT database, name FROM system.tables WHERE database IN ('${own.join("','")}')`,
    )
    expect(known.length).toBeGreaterThan(40)
    for (const { database, name } of known) {
      const reading = as(user).rows({ query: `SELECT * FROM ${database}.${called(name)} LIMIT 1` })
      if (readable.includes(name)) await expect(reading, name).resolves.toBeInstanceOf(Array)
      else await expect(reading, `${database}.${name}`).rejects.toMatchObject({ type: 'ACCESS_DENIED' })
    }
  })

  test.each([
    `INSERT INTO ${views}.campaigns (campaign_id) SELECT 'c'`,
    `INSERT INTO ${read}_all.campaigns (campaign_id) SELECT 'c'`,
    `DROP TABLE ${views}.campaigns`,
    `TRUNCATE TABLE ${parts}.all_platform_sums`,
    `ALTER TABLE ${parts}.campaigns MODIFY SQL SECURITY INVOKER`,
    `SELECT * FROM cluster('main', ${ledger}, pledge_ledger)`,
    `SELECT * FROM cluster('main_counts', ${base}, shard_backers)`,
    `SELECT * FROM clusterAllReplicas('main', ${ledger}, pledge_ledger)`,
    `SELECT * FROM remote('127.0.0.1', ${ledger}, pledge_ledger)`,
    `CREATE VIEW ${views}.mine AS SELECT 1`,
  ])('let no analyst run %s', async query => {
    await expect(as('pledgeview_analyst').run({ query })).rejects.toMatchObject({ type: 'ACCESS_DENIED' })
  })

  test('let nobody read a hash of a person: of all tables, only those of the states have any', async () => {
    const states = await rowsOf<{ name: string }>(
      shards.tables,
      `SELECT DISTINCT concat(database, '.', table) AS name FROM system.columns WHERE database != 'system' AND type LIKE '%AggregateFunction%' ORDER BY name`,
    )
    const kept = [base, `${base}_all`].flatMap(name => [`${name}.shard_backers`, `${name}.shard_creators`])
    expect(states.map(({ name }) => name)).toEqual(kept)
  })

  test('every shard’s view reads as the definer, and every view of the whole as the person who asks', async () => {
    const defined = await rowsOf<{ name: string; query: string }>(
      shards.tables,
      `SELECT concat(database, '.', name) AS name, create_table_query AS query FROM system.tables
       WHERE engine = 'View' AND database IN ('${own.join("','")}', '${views}', '${parts}')`,
    )
    const readAs = Map.groupBy(defined, ({ query }) => / SQL SECURITY (\w+)/.exec(query)?.[1])
    expect(
      readAs
        .get('INVOKER')
        ?.map(({ name }) => name)
        .sort(),
    ).toEqual([
      `${views}.about`,
      `${views}.categories`,
      `${views}.category_funding_days`,
      `${views}.funding_days`,
      `${views}.platform_totals`,
      `${read}_all.campaign_by_slug`,
      `${read}_all.watermark`,
    ])
    const ofShards = readAs.get('DEFINER') ?? []
    expect(ofShards.length).toBeGreaterThanOrEqual(publicViews.length + privateViews.length)
    for (const { query } of ofShards) expect(query).toContain('DEFINER = pledgeview_definer')
  })
})

test('a view as an earlier version made it is replaced, and migrating again changes nothing', async () => {
  const described = async () =>
    (
      await rowsOf<{ text: string }>(
        shards.tables,
        `SELECT create_table_query AS text FROM system.tables WHERE database NOT IN ('system', 'default') ORDER BY text`,
      )
    ).map(({ text }) => text)
  const before = await described()
  for (const { tables } of shards.shards) {
    await tables.run({ query: `DROP TABLE ${views}.campaigns` })
    await tables.run({
      query: `CREATE VIEW ${views}.campaigns AS SELECT * FROM ${read}_all.campaigns FINAL`,
    })
  }
  await shards.migrate()
  expect(await described()).toEqual(before)
})

describe('migrate on two shards, of other tables', () => {
  const names = { base: 'again', views: 'again_views' }
  const query = `SELECT database, name FROM system.tables WHERE startsWith(database, 'again') ORDER BY ALL`
  let near: Shard
  let far: Shard
  beforeAll(() => {
    ;[near, far] = shards.shards as [Shard, Shard]
  })

  const onBoth = () => migrate(onEveryShard([near, far]), names, cluster)

  async function expectWhole(): Promise<void> {
    const made = await near.tables.rows({ query })
    expect(made.length).toBeGreaterThan(60)
    expect(await far.tables.rows({ query })).toEqual(made)
    for (const { tables } of [near, far]) await checkMigrated(tables, generationOf(names, 1))
  }

  async function lose({ tables }: Shard, part = ''): Promise<void> {
    const own = `SELECT name FROM system.databases WHERE startsWith(name, 'again') AND position(name, '${part}') > 0`
    for (const { name } of await tables.rows<{ name: string }>({ query: own }))
      await tables.run({ query: `DROP DATABASE ${name} SYNC` })
  }

  test('makes nothing if one of the servers does not know the cluster that counts', async () => {
    const run = vi.fn()
    const silent = ({ tables, ...shard }: Shard) => ({ ...shard, tables: { ...tables, run } })
    const unknowing = { ...silent(far), tables: { ...far.tables, run, rows: async () => [] } }
    for (const [shards, name] of [
      [[near, far].map(silent), 'other'],
      [[silent(near), unknowing], cluster.cluster],
    ] as const)
      await expect(migrate(onEveryShard(shards), names, { cluster: name })).rejects.toThrow(
        `remote_servers needs a second cluster ${name}_counts`,
      )
    expect(run).not.toHaveBeenCalled()
  })

  test('goes on where a shard was away', async () => {
    const away = () => Promise.reject(new Error('the second shard is away'))
    const cut = { ...far, tables: { ...far.tables, insert: away } }
    await expect(migrate(onEveryShard([near, cut]), names, cluster)).rejects.toThrow('away')
    await onBoth()
    await expectWhole()
  })

  test('makes the views of a new generation and of a new server also after a later version has run', async () => {
    const noteLater = { query: "INSERT INTO again.migrations (number, name) SELECT 99, 'later'" }
    for (const { tables } of [near, far]) await tables.run(noteLater)
    await createGeneration(onEveryShard([near, far]), generationOf(names, 2), cluster)
    const viewsOf = (generation: number) =>
      near.tables.rows({
        query: `SELECT name FROM system.tables WHERE database = 'again_read_${generation}_all' ORDER BY name`,
      })
    expect(await viewsOf(2)).toEqual(await viewsOf(1))
    await lose(near, '_2')
    await lose(far)
    await onBoth()
    await expectWhole()
  })

  test('makes the tables of a new server in place of a lost one, but not of the first, which knew the current generation', async () => {
    await lose(far)
    await onBoth()
    await expectWhole()
    await lose(near)
    await expect(onBoth()).rejects.toThrow(
      'there are the databases again_ledger_1, again_read_1, and again.generation_log names no current generation',
    )
  })
})

/** Ingests the world into the whole tables, and folds each shard. */
async function fill(tables: Tables, databases: Databases, folded: readonly Shard[]): Promise<void> {
  await holdTablesIdentity(tables, databases, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' })
  await createIngest(tables, databases)(world.events)
  await Promise.all(folded.map(fold))
}

async function fold(shard: Shard): Promise<void> {
  const { foldWorker } = createTestFoldWorker(shard.tables, shard.databases)
  await foldWorker.acquireLeadership()
  await foldWorker.fold()
}

const opened = new Map<string, Tables>()

function as(user: ShardUser): Tables {
  const tables = opened.get(user) ?? shards.as(user, askers[user])
  opened.set(user, tables)
  return tables
}

async function contentOf(tables: Tables, view: string): Promise<string[]> {
  const rows = await rowsOf<Record<string, unknown>>(tables, `SELECT * FROM ${views}.${view}`)
  return rows
    .map(row => JSON.stringify(Object.entries(row).filter(([name]) => !momentsOfFold.includes(name))))
    .sort()
}

function rowsOf<Row>(tables: Tables, query: string): Promise<Row[]> {
  return tables.rows<Row>({ query })
}
