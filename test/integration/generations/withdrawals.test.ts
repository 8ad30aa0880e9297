/** What withdrawn-worlds.test.ts does not draw: the end of a key, a rule that has changed, clock steps, and merges of a ledger. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { changedSince, type Look, lookAt, rangesOf } from '../../../services/generations/withdrawals.ts'
import { qualified } from '../../../services/tables/generation-log.ts'
import { apiKeyEvent, campaignEvent, pledgeEvent } from '../../support/events/sample-events.ts'
import { emptyLog, openRebuildableModel, type RebuildableModel } from '../../support/generations/rebuilds.ts'
import { column } from '../../support/projector/fold-records.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

// A busy machine is no failure.
vi.setConfig({ testTimeout: 480_000 })

const model = useModelTables()
let live: RebuildableModel
const key = apiKeyEvent({ key: 'k1', account_id: 'acc' })

beforeEach(async () => {
  live = await openRebuildableModel(model)
})
afterEach(() => live.close())

test('a rebuild from the states before a key got an end does not take the end back, and loses nothing of its row', async () => {
  const at = Date.UTC(2040, 0, 1)
  const times = { expires_at: at, issued_at: at - 1 }
  await live.append([
    key,
    apiKeyEvent({ key: 'k1', account_id: 'acc', version: 2, ...times }),
    apiKeyEvent({ key: 'k2', account_id: 'acc', status: 'REVOKED', ...times }),
  ])
  await live.settled()
  emptyLog(live)
  await live.append([key])
  const ledger = `${live.databases.base}.api_key_ledger`
  const rowsOf = () =>
    live.tables.rows({ query: `SELECT * FROM ${ledger} FINAL WHERE account_id != '' ORDER BY api_key` })
  const before = await rowsOf()
  expect(before).toMatchObject([
    { api_key: 'k1', issued_at: '2039-12-31 23:59:59.999' },
    { api_key: 'k2', issued_at: '2039-12-31 23:59:59.999' },
  ])
  await live.rebuild({ acceptsLoss: true })
  await live.settled()
  expect(await rowsOf()).toEqual(before)
  const active = `SELECT api_key AS value FROM ${live.databases.base}.api_keys FINAL WHERE is_active`
  expect(await column(live.tables, active)).toEqual(['k1'])
})

test('a campaign that an older rule hid is shown by a rebuild whose log has the same version', async () => {
  await live.append([campaignEvent({ campaign_id: 'c1' })])
  await live.settled()
  const ledger = `${live.databases.ledger}.campaign_ledger`
  await live.tables.run({
    query: `INSERT INTO ${ledger} SELECT * REPLACE (false AS is_public, '' AS title) FROM ${ledger} FINAL`,
  })
  await live.rebuild()
  await live.settled()
  const shown = `SELECT campaign_id AS value FROM ${live.databases.views}.campaigns`
  expect(await column(live.tables, shown)).toEqual(['c1'])
})

test('what is new in the batch log is each later batch, also after a step of the clock, and no earlier one', async () => {
  const { tables, databases } = live
  const changed = async (look: Look) => {
    const { condition, parameters } = changedSince(databases, look)
    const query = `SELECT campaign_id AS value FROM
      (SELECT arrayJoin(['c1', 'c2', 'c3', 'c4']) AS campaign_id) WHERE ${condition} ORDER BY value`
    return (await tables.rows<{ value: string }>({ query, query_params: parameters })).map(
      ({ value }) => value,
    )
  }
  const log = (run: string, sequence: number, campaign: string, minutesAgo: number) =>
    tables.run({
      query: `INSERT INTO ${databases.ledger}.batch_log (projector, sequence, campaign_ids, appended_at)
              SELECT '${run}', ${sequence}, ['${campaign}'], now64(3) - toIntervalMinute(${minutesAgo})`,
    })
  const first = await lookAt(tables, databases)
  await log('a', 1, 'c1', 1)
  await log('b', 1, 'c2', 90)
  const second = await lookAt(tables, databases)
  await log('a', 2, 'c3', 30)
  await log('c', 1, 'c4', 30)
  expect([await changed(first), await changed(second)]).toEqual([
    ['c1', 'c3', 'c4'],
    ['c3', 'c4'],
  ])
})

test('the ranges of a rebuild have every campaign once, also one that the ledger does not know', async () => {
  const ids = Array.from({ length: 10 }, (_, n) => `c${n}`)
  await live.append(ids.map(campaign_id => campaignEvent({ campaign_id })))
  await live.settled()
  for (const campaigns of [1, 3, 5, 10, 11]) {
    const found: unknown[] = []
    const all = ['', 'b', ...ids, 'c55', 'd']
    for (const { condition, parameters } of await rangesOf(live.tables, live.databases, campaigns)) {
      const query = `SELECT value FROM (SELECT arrayJoin({all:Array(String)}) AS campaign_id, campaign_id AS value) WHERE ${condition}`
      const rows = await live.tables.rows<{ value: string }>({ query, query_params: { ...parameters, all } })
      found.push(...rows.map(({ value }) => value))
    }
    expect(found, `${campaigns} a range`).toHaveLength(all.length)
    expect(new Set(found)).toEqual(new Set(all))
  }
})

test('a ledger never forgets a tombstone: merges keep it', async () => {
  await live.append([
    campaignEvent({ campaign_id: 'c1' }),
    pledgeEvent({ campaign_id: 'c1', pledge_id: 'p1' }),
    key,
    { type: 'campaign', key: 'c1', data: null },
    { type: 'pledge', key: 'c1/p1', data: null },
    { type: 'api-key', key: 'k1', data: null },
  ])
  await live.settled()
  for (const name of ['campaign_ledger', 'pledge_ledger', 'api_key_ledger']) {
    const ledger = qualified(name, live.databases)
    await live.tables.run({ query: `OPTIMIZE TABLE ${ledger} FINAL` })
    const tombstones = `SELECT count() AS value FROM ${ledger} WHERE version = 18446744073709551615`
    expect(await column(live.tables, tombstones), name).toEqual([1])
  }
})
