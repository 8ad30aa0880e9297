import { describe, expect, test } from 'vitest'
import { clusterViews } from '../../../services/tables/cluster-views.ts'
import { generationOf, qualified } from '../../../services/tables/generations.ts'
import { readClusterViews, readMigrations } from '../../../services/tables/migrate.ts'
import {
  distributedDatabases,
  replicatedForms,
  replicatedSettings,
} from '../../../services/tables/replicated.ts'
import { readRoles } from '../../../services/tables/roles.ts'

const databases = generationOf({ base: 'pledgeview', views: 'crowdfunding' }, 1)
const whole = distributedDatabases(databases)
const replicated = { cluster: 'main' }
const migrated = [
  ...readMigrations(databases, { replicated }).flatMap(file => file.statements),
  ...readClusterViews(databases, { replicated }),
  ...readRoles(databases, { replicated }).flatMap(file => file.statements),
].map(statement => statement.replaceAll(/\s+/g, ' '))
const made = (statement: string) => /^CREATE OR REPLACE .*? ON CLUSTER/.exec(statement)?.[0]
// A migration may make a view again.
const last = new Map(migrated.map((statement, at) => [made(statement) ?? at, statement]))
const statements = [...last.values()]

/** What follows the columns, of the statement that makes this table. */
function definitionOf(table: string, creation = 'CREATE'): string {
  const exists = creation === 'CREATE' ? ' IF NOT EXISTS' : ''
  const statement = statements.find(text =>
    text.startsWith(`${creation} TABLE${exists} ${table} ON CLUSTER 'main' `),
  )
  expect(statement, `there is a statement for ${table}`).toBeDefined()
  return statement?.slice(statement.indexOf(' ENGINE = ') + 1) ?? ''
}

describe('on a cluster', () => {
  test('every statement runs on all of its servers', () => {
    expect(statements.filter(statement => !statement.includes(" ON CLUSTER 'main'"))).toEqual([])
  })

  test.each([
    ['campaign_ledger', 'ReplacingMergeTree', ', version', 'ORDER BY campaign_id'],
    ['pledge_ledger', 'ReplacingMergeTree', ', version', 'ORDER BY (campaign_id, pledge_id)'],
    ['campaigns', 'ReplacingMergeTree', ', fold_id, is_deleted', 'ORDER BY campaign_id'],
    ['api_keys', 'ReplacingMergeTree', ', fold_id, is_deleted', 'ORDER BY api_key'],
    ['fold_progress', 'ReplacingMergeTree', ', fold_id', 'ORDER BY (projector, is_folded)'],
  ])(
    '%s is replicated within its shard, and keeps its engine, order and settings',
    (table, engine, more, order) => {
      const name = qualified(table, databases)
      const path = `'/clickhouse/tables/{shard}/${name.replace('.', '/')}', '{replica}'`
      const definition = definitionOf(name)
      expect(definition).toContain(`ENGINE = Replicated${engine}(${path}${more}) ${order}`)
      expect(definition).toContain('fsync_after_insert = 1')
    },
  )

  test('no table has another’s place in Keeper, and none depends on the name it has now', () => {
    const paths = statements.flatMap(statement => /Replicated\w*\('([^']+)'/.exec(statement)?.[1] ?? [])
    expect(paths).toHaveLength(21)
    expect(new Set(paths).size).toBe(paths.length)
    expect(paths.filter(path => /\{(?:table|database|uuid)\}/.test(path))).toEqual([])
  })

  test('all that a fold needs of a campaign lies on the campaign’s shard', () => {
    for (const table of ['campaign_ledger', 'pledge_ledger', 'campaigns']) {
      const [own] = qualified(table, databases).split('.')
      expect(definitionOf(qualified(table, whole))).toBe(
        `ENGINE = Distributed('main', '${own}', '${table}', cityHash64(campaign_id))`,
      )
    }
  })

  test('all keys are on one shard, so that those of an account are counted together', () => {
    for (const table of ['api_key_ledger', 'api_keys']) {
      expect(definitionOf(`pledgeview_all.${table}`)).toContain(`'${table}', cityHash64(api_key) % 1)`)
    }
  })

  test('the usage of a key is beside the key, and the query service inserts it for the whole cluster', () => {
    expect(definitionOf('pledgeview_all.api_key_usage')).toContain(
      `'api_key_usage', cityHash64(api_key) % 1)`,
    )
    expect(definitionOf('pledgeview.api_key_usage')).toContain('TTL toDateTime(minute) + INTERVAL 90 DAY')
    for (const database of ['pledgeview', 'pledgeview_all']) {
      const on = `ON ${database}.api_key_usage TO`
      expect(statements).toContain(`GRANT ON CLUSTER 'main' INSERT ${on} pledgeview_query`)
      expect(statements).toContain(`GRANT ON CLUSTER 'main' SELECT ${on} pledgeview_portal`)
    }
  })

  test('a new column comes to the shards’ parts first, then to the whole table', () => {
    const added = 'ADD COLUMN IF NOT EXISTS note String'
    const forms = replicatedForms(`ALTER TABLE \${base}.api_key_ledger\n    ${added}`, replicated)
    expect(forms.map(form => form.slice(0, form.indexOf(added)).trim())).toEqual([
      "ALTER TABLE ${base}.api_key_ledger ON CLUSTER 'main'",
      "ALTER TABLE ${base}_all.api_key_ledger ON CLUSTER 'main'",
    ])
    for (const form of forms) expect(form).toContain(added)
  })

  test('a codec is changed in the shards’ parts only: the whole table has none', () => {
    const changed = 'ALTER TABLE ${read}.campaigns MODIFY COLUMN list_fields CODEC(LZ4)'
    expect(replicatedForms(changed, replicated)).toEqual([
      "ALTER TABLE ${read}.campaigns ON CLUSTER 'main' MODIFY COLUMN list_fields CODEC(LZ4)",
    ])
  })

  test('a fold follows the batches of all shards, and has its own epochs and log', () => {
    expect(definitionOf('pledgeview_ledger_1.batch_log')).toBe(
      definitionOf('pledgeview_ledger_1_all.batch_log'),
    )
    expect(definitionOf('pledgeview_ledger_1.batch_log')).toContain(
      "Distributed('main', 'pledgeview_ledger_1', 'batch_log_shard'",
    )
    expect(definitionOf('pledgeview_ledger_1.batch_log_shard')).toContain('TTL toDateTime(appended_at)')
    expect(statements.filter(text => /_all\.fold_/.test(text))).toEqual([])
  })

  test('once there is a definer, no view ever reads with the rights and settings of whom asks or migrates', () => {
    const made = readClusterViews(databases, { replicated, viewsDefiner: 'pledgeview_definer' })
    const readAs = made.flatMap(
      statement => /(?:DEFINER = (\w+) )?SQL SECURITY (\w+)/.exec(statement)?.slice(1, 3).join(' ') ?? [],
    )
    expect(new Set(readAs)).toEqual(new Set(['pledgeview_definer DEFINER', ' INVOKER']))
  })

  test('every server knows which migrations ran', () => {
    const replicatedMigrations = replicatedForms(
      'CREATE TABLE IF NOT EXISTS ${base}.migrations (n UInt8)\nENGINE = MergeTree\nORDER BY n',
      replicated,
    )
    expect(replicatedMigrations).toEqual([
      "CREATE TABLE IF NOT EXISTS ${base}.migrations ON CLUSTER 'main' (n UInt8)\n" +
        "ENGINE = ReplicatedMergeTree('/clickhouse/tables/all/${base}/migrations', '{shard}-{replica}')\nORDER BY n",
    ])
  })

  test('a shard’s view reads its own shard, and a view of the whole only what the shards show', () => {
    const views = statements.filter(statement => statement.startsWith('CREATE OR REPLACE VIEW'))
    const ofShards = views.filter(view => view.includes(' SQL SECURITY DEFINER '))
    expect(ofShards).toHaveLength(27)
    const counts = ofShards.filter(view => / VIEW crowdfunding_parts\.(?:backers|creators) /.test(view))
    expect(counts).toHaveLength(2)
    for (const view of counts)
      expect(view).toMatch(/SELECT uniqExactMerge\(.* FROM pledgeview_all\.shard_\w+/)
    for (const view of ofShards.filter(view => !counts.includes(view))) {
      expect(view).toMatch(/^CREATE OR REPLACE VIEW (?:crowdfunding_parts|pledgeview|pledgeview_read_1)\./)
      expect(view).not.toMatch(/_all\.|\bcrowdfunding\./)
    }
    const ofWhole = views.filter(view => view.includes(' SQL SECURITY INVOKER '))
    expect(ofWhole).toHaveLength(views.length - ofShards.length)
    for (const view of ofWhole) {
      expect(view).toMatch(/^CREATE OR REPLACE VIEW (?:crowdfunding|pledgeview_read_1_all)\./)
      expect(view).toMatch(/ FROM (?:crowdfunding_parts\.all_|pledgeview_read_1_all\.)\w+/)
    }
  })

  test('rows of the whole are joined from the shards’ views, never from their tables', () => {
    expect(definitionOf('crowdfunding.campaigns', 'CREATE OR REPLACE')).toContain(
      "ENGINE = Distributed('main', 'crowdfunding_parts', 'campaigns') COMMENT 'Public campaigns, one row each, as they are now'",
    )
    const joined = statements.filter(statement => statement.startsWith('CREATE OR REPLACE TABLE'))
    expect(joined).toHaveLength(16)
    for (const table of joined)
      expect(table).toMatch(
        /Distributed\('main(?:_counts)?', '(?:crowdfunding_parts|pledgeview|pledgeview_read_1)', '/,
      )
  })

  test('the hashes of people are read over the cluster that counts, into private tables, and nothing else is', () => {
    const counted = statements.filter(statement => statement.includes("Distributed('main_counts'"))
    expect(counted.map(statement => /^CREATE OR REPLACE TABLE (\S+)/.exec(statement)?.[1])).toEqual([
      'pledgeview_all.shard_backers',
      'pledgeview_all.shard_creators',
    ])
    const states = statements.filter(statement => statement.includes('uniqExactState('))
    expect(states.map(statement => / VIEW (\S+)/.exec(statement)?.[1])).toEqual([
      'pledgeview.shard_backers',
      'pledgeview.shard_creators',
    ])
    const granted = statements.flatMap(
      text => / SELECT ON \w+\.shard_(?:backers|creators) TO (\w+)/.exec(text)?.[1] ?? [],
    )
    expect(new Set(granted)).toEqual(new Set(['pledgeview_counter', 'pledgeview_definer']))
  })

  test('a view that nobody has thought of for a cluster is refused', () => {
    const migrations = ['CREATE OR REPLACE VIEW ${views}.never_heard_of\nSQL SECURITY DEFINER\nAS SELECT 1']
    expect(() => clusterViews({ migrations, parts: [], wholes: [], people: [] }, 'main')).toThrow(
      'never_heard_of',
    )
  })

  test('the query service and the views’ definer may read the whole tables and the shards’ parts', () => {
    for (const database of ['pledgeview', 'pledgeview_all']) {
      expect(statements).toContain(
        `GRANT ON CLUSTER 'main' SELECT ON ${database}.api_keys TO pledgeview_query`,
      )
    }
    for (const [place, user] of [
      ['pledgeview_read_*', 'pledgeview_query'],
      ['pledgeview_ledger_*', 'pledgeview_definer'],
    ]) {
      expect(statements).toContain(`GRANT ON CLUSTER 'main' SELECT ON ${place}.* TO ${user}`)
    }
  })

  test('a statement sees all inserts that were acknowledged before it, or fails', () => {
    expect(replicatedSettings).toMatchObject({
      insert_quorum: 'auto',
      insert_quorum_parallel: 0,
      select_sequential_consistency: 1,
      distributed_foreground_insert: 1,
      skip_unavailable_shards: 0,
    })
  })

  test.each([
    'CREATE TABLE IF NOT EXISTS ${base}.never_heard_of (n UInt8)\nENGINE = MergeTree\nORDER BY n',
    'ALTER TABLE ${read}.campaigns ADD COLUMN n UInt8',
    'DROP TABLE ${read}.campaigns',
  ])('a statement without a defined form is refused: %s', statement => {
    expect(() => replicatedForms(statement, replicated)).toThrow()
  })

  test.each(['', 'a b', "x'; DROP", '{cluster}'])('a cluster cannot have the name %j', cluster => {
    expect(() => replicatedForms('CREATE DATABASE IF NOT EXISTS ${base}', { cluster })).toThrow(TypeError)
  })
})

test('on one server, statements stay as the files have them', () => {
  const plain = readMigrations(databases).flatMap(file => file.statements)
  expect(plain.filter(statement => /ON CLUSTER|Replicated|Distributed|_all\b/.test(statement))).toEqual([])
})
