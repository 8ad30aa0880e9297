/** The live state of the first page, from real tables. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLiveStateReader } from '../../../../services/portal/guide/live-state.ts'
import type { Tables } from '../../../../services/tables/port.ts'
import { testClock } from '../../../support/query-app.ts'
import { campaignRow, openQueryTables, type QueryTables } from '../../../support/query-tables.ts'

let store: QueryTables
beforeAll(async () => {
  store = await openQueryTables()
})
afterAll(() => store?.close())

function reader(tables: Pick<Tables, 'rows'> = store.tables) {
  const clock = testClock()
  const warnings: string[] = []
  const live = createLiveStateReader({
    tables,
    databases: store.databases,
    now: clock.now,
    warn: message => warnings.push(message),
  })
  /** The first state that is read in time: a busy machine may take longer than a page waits. */
  async function inTime() {
    for (;;) {
      const state = await live.read()
      if (state.status !== 'unavailable') return state
      clock.advance(10_000)
    }
  }

  return { clock, live, inTime, warnings }
}

test('it counts the public campaigns and says up to when every change can be read', async () => {
  await store.putCampaigns(['a', 'b', 'c'].map(id => campaignRow(id)))
  const before = Date.now()
  await store.advanceWatermark()
  const state = await reader().inTime()
  expect(state).toMatchObject({ status: 'up to date', campaigns: 3 })
  expect(Number(state.as_of)).toBeGreaterThanOrEqual(before)
  expect(Number(state.as_of)).toBeLessThanOrEqual(Date.now())
})

test('it says that the data is behind if the watermark stands still', async () => {
  await store.advanceWatermark({ shard: 'one', time: 'now64(3) - INTERVAL 1 HOUR' })
  expect(await reader().inTime()).toMatchObject({ status: 'behind', campaigns: expect.any(Number) })
})

test('tables that do not answer are said to be unavailable, without an error and without a wait', async () => {
  const failing = reader({ rows: () => Promise.reject(new Error('away')) })
  expect(await failing.live.read()).toEqual({
    status: 'unavailable',
    campaigns: undefined,
    as_of: undefined,
  })
  expect(failing.warnings).toEqual([expect.stringContaining('away')])
  const silent = reader({ rows: () => new Promise(() => {}) })
  expect(await silent.live.read()).toMatchObject({ status: 'unavailable' })
})

test('however many people open the page, the tables are read once in ten seconds', async () => {
  let reads = 0
  const { live, clock } = reader({
    rows: (...args) => {
      reads++
      return store.tables.rows(...args)
    },
  })
  await Promise.all(Array.from({ length: 50 }, () => live.read()))
  clock.advance(9_999)
  await live.read()
  expect(reads).toBe(1)
  clock.advance(1)
  await live.read()
  expect(reads).toBe(2)
})
