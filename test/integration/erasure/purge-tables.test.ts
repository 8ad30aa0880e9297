/** What a purge does with the tables, for an erasure request: the usage of deleted keys, campaigns in quarantine, and a rebuild meanwhile. */
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import type { Topic } from '../../../contracts/events/event.ts'
import { type Copies, purge as purgeCopies } from '../../../services/erasure/purge.ts'
import { purgeTables } from '../../../services/erasure/tables.ts'
import { createRebuilds } from '../../../services/generations/rebuilds.ts'
import { totalOf } from '../../../services/portal/usage/usage-view.ts'
import { fileStatement } from '../../../services/projector/fold/fold-statements.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import {
  followedDatabases,
  readGenerations,
  standingGenerations,
} from '../../../services/tables/generation-log.ts'
import { campaignEvent, campaignTombstone } from '../../support/events/sample-events.ts'
import { openRebuildableModel, platformHistory } from '../../support/generations/rebuilds.ts'
import { lead, stepOf } from '../../support/projector/fold-records.ts'
import { createIngest } from '../../support/projector/model-tables.ts'
import { keptRejects, storeAt } from '../../support/projector/reject-filters.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { createTestRecorder, readUsage } from '../../support/query/usage.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 120_000 })

const model = useModelTables()
const logger = pino({ level: 'silent' })
const copies = ['table api_key_requests', 'table api_key_usage']
const purge = {
  removesRejects: false,
  msMax: 60_000,
  now: Date.now,
  monotonicMs: () => performance.now(),
  sleep,
}

test('a purge names each campaign whose old state it cannot reach, and none that is deleted: that one has left already', async () => {
  const { tables } = model
  const databases = await model.freshDatabases()
  const ids = ['failing', 'folded alone', 'deleted', 'released']
  await createIngest(
    tables,
    databases,
  )([...ids.map(campaign_id => campaignEvent({ campaign_id })), campaignTombstone('deleted')])
  await lead(tables, databases)
  for (const [n, campaign] of ids.entries()) {
    const failures = campaign === 'folded alone' ? 0 : 2
    const record = { campaign, failures, reason: 'TIMEOUT', is_quarantined: campaign !== 'released' }
    await tables.run(fileStatement('record-quarantine', databases, stepOf(n), record))
  }

  const planned = await purgeTables({ tables, databases }, { ...purge, isDry: true })
  const named = planned.filter(({ copy }) => copy.startsWith('campaign '))
  expect(named.map(({ copy, is_reached }) => [copy, is_reached])).toEqual([
    ['campaign failing', false],
    ['campaign folded alone', true],
  ])
  await model.giveBack(databases)
})

test('a purge removes the usage of deleted keys, and the rejects of deleted accounts and of their notices, and leaves those of others, as of an account that was signed up again', async () => {
  const { tables } = model
  const databases = await model.freshDatabases()
  const usage = createTestRecorder(tables, databases, 'p')
  const revoked = "it's \\ revoked"
  const deleted = "it's \\ deleted"
  const request = { id: 'r', method: 'GET', route: '/', status: 200, admission: null, parameters: null }
  for (const key of [revoked, deleted]) usage.count(key, 200, false, { ...request, isDeprecated: false })
  await usage.close()
  await tables.run({
    query: `INSERT INTO ${databases.base}.api_key_ledger (api_key, version, is_unrevoked, account_id)
            SELECT key, version, false, account FROM values('key String, version UInt64, account String',
              ({revoked:String}, 2, 'account'), ({deleted:String}, 1, 'account'), ({deleted:String}, 18446744073709551615, ''))
            SETTINGS async_insert = 0`,
    query_params: { revoked, deleted },
  })
  await tables.run({
    query: `INSERT INTO ${databases.base}.account_ledger (account_id, version, email)
            SELECT * FROM values('account String, version UInt64, email String',
              ('gone', 1, 'gone@one.example'), ('gone', 2, ''), ('again', 2, ''), ('again', 3, 'again@one.example'))`,
  })
  await tables.run({
    query: `INSERT INTO ${databases.base}.notice_ledger (notice_id, version, rule, account_id, changed_at)
            SELECT *, now() FROM values('notice String, version UInt64, rule String, account String',
              ('removed', 18446744073709551615, '', ''), ('of gone', 1, 'KEY_CREATED', 'gone'), ('of again', 1, 'KEY_CREATED', 'again'))`,
  })
  const rejectOf = (topic: Topic, key: string, offset: number) => ({
    record: { topic, key: Buffer.from(key), value: null, partition: 0, offset, appendedAt: 0 },
    reason: 'is no event',
    rejectedAt: Date.now(),
  })
  await storeAt(tables, databases, [
    ...['gone', 'again', 'removed'].map((key, offset) => rejectOf('accounts', key, offset)),
    ...['removed', 'of gone', 'of again', 'gone'].map((key, offset) => rejectOf('notices', key, offset)),
  ])
  const shown = async (key: string) => {
    const now = Date.now()
    return totalOf((await readUsage(tables, databases, { key, now })).days).ok
  }
  const plan = await purgeTables({ tables, databases }, { ...purge, isDry: true })
  for (const copy of copies)
    expect(plan).toContainEqual(
      expect.objectContaining({ copy, done: 'removes the rows of 1 deleted key', is_reached: true }),
    )
  expect(await shown(deleted)).toBe(1)
  const report = await purgeTables({ tables, databases }, { ...purge, isDry: false })
  for (const copy of copies)
    expect(report).toContainEqual(
      expect.objectContaining({ copy, done: 'removed the rows of 1 deleted key', left: null }),
    )
  expect(report.find(({ copy }) => copy === 'table rejects')).toMatchObject({ done: 'removed 3 rows' })
  const left = (await keptRejects(tables, databases)).map(({ record: { topic, key } }) => `${topic}/${key}`)
  expect(left.toSorted()).toEqual(['accounts/again', 'accounts/removed', 'notices/gone', 'notices/of again'])
  const kept = { query: `SELECT api_key FROM ${databases.base}.api_key_requests` }
  expect(await tables.rows(kept)).toEqual([{ api_key: revoked }])
  expect([await shown(deleted), await shown(revoked)]).toEqual([0, 1])
  const again = await purgeTables({ tables, databases }, { ...purge, isDry: false })
  for (const copy of copies)
    expect(again).toContainEqual(expect.objectContaining({ copy, done: 'no deleted key' }))
})

test('a purge resets the settings that a killed one has left, also of tables that have nothing to purge', async () => {
  const { tables } = model
  const databases = await model.freshDatabases()
  const engines = () =>
    tables.rows({
      query: `SELECT name, engine_full FROM system.tables
              WHERE database IN {names:Array(String)} AND engine_full LIKE '%MergeTree%' ORDER BY name`,
      query_params: { names: [databases.base, databases.ledger, databases.read] },
    })
  const before = await engines()
  for (const table of ['api_key_usage', 'rejects'])
    await tables.run({
      query: `ALTER TABLE ${databases.base}.${table}
              MODIFY SETTING old_parts_lifetime = 0, min_rows_to_fsync_after_merge = 1`,
    })
  const left = await engines()
  expect(left).not.toEqual(before)
  await purgeTables({ tables, databases }, { ...purge, isDry: true })
  expect(await engines()).toEqual(left)
  await purgeTables({ tables, databases }, { ...purge, isDry: false })
  expect(await engines()).toEqual(before)
})

test('a purge during which another generation becomes current says that it is not done, and drops nothing: the next one is', async () => {
  const live = await openRebuildableModel(model)
  await live.append(platformHistory(5))
  await live.settled()
  const config = readConfig({})
  const unused = () => Promise.reject(new Error('only a rebuild needs it'))
  const run = async (purgeLog: Copies['purgeLog']) => {
    const databases = followedDatabases(live.databases)
    await databases.follow(live.tables)
    const copies: Copies = {
      whole: { tables: live.tables, databases },
      shards: [{ tables: live.tables, databases }],
      rebuilds: createRebuilds({
        ...live,
        isAlone: true,
        config,
        logger,
        decoding: unused,
        withHistory: unused,
      }),
      isServed: false,
      lag: async () => [],
      purgeLog,
      others: async () => [],
    }
    const report = await purgeCopies(copies, { ...purge, isDry: false }, config)
    return report.copies.find(({ copy }) => copy === 'previous tables')
  }
  const generations = async () =>
    standingGenerations(await readGenerations({ tables: live.tables, base: live.databases.base }))

  const beside = await run(async () => {
    await live.rebuild()
    return []
  })
  expect(beside).toMatchObject({ is_reached: false, left: expect.stringMatching(/became current.*again/) })
  expect(await generations()).toEqual([1, 2])
  expect(await run(async () => [])).toMatchObject({ is_reached: true, left: null })
  expect(await generations()).toEqual([2])
  await live.close()
})

test('a purge says that answers are in Redis until those of the longest cache time have expired', async () => {
  const { tables } = model
  const databases = followedDatabases(await model.freshDatabases())
  await databases.follow(tables)
  const now = Date.parse('2026-03-01T12:00:00Z')
  const none = async () => []
  const copies: Copies = {
    whole: { tables, databases },
    shards: [],
    rebuilds: { report: async () => undefined, drop: async () => undefined as never },
    isServed: true,
    ...{ lag: none, purgeLog: none, others: none },
  }
  const config = readConfig({ PLEDGEVIEW_CACHE_MS: '1000', PLEDGEVIEW_STATS_CACHE_MS: '600000' })
  const settings = { ...purge, isDry: false, now: () => now, sleep: async () => undefined }
  const { copies: done } = await purgeCopies(copies, settings, config)
  expect(done).toContainEqual(
    expect.objectContaining({ copy: 'cached answers', until: '2026-03-01T12:10:00.000Z' }),
  )
})
