/** The usage of deleted keys, for an erasure request. */
import { expect, test } from 'vitest'
import { purgeTables } from '../../../services/erasure/tables.ts'
import { totalOf } from '../../../services/portal/usage/usage-view.ts'
import { sleep } from '../../../services/runtime/sleep.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { createTestRecorder, readUsage } from '../../support/query/usage.ts'

const model = useModelTables()

const copies = ['table api_key_requests', 'table api_key_usage']

test('a purge removes the usage of deleted keys, and leaves that of others', {
  timeout: 120_000,
}, async () => {
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
  const shown = async (key: string) => {
    const now = Date.now()
    return totalOf((await readUsage(tables, databases, { key, now })).days).ok
  }

  const purge = {
    removesRejects: false,
    msMax: 60_000,
    now: Date.now,
    monotonicMs: () => performance.now(),
    sleep,
  }
  const plan = await purgeTables({ tables, databases }, { ...purge, isDry: true })
  for (const copy of copies)
    expect(plan).toContainEqual(
      expect.objectContaining({ copy, done: 'removes the rows of 1 deleted key', isReached: true }),
    )
  expect(await shown(deleted)).toBe(1)
  const report = await purgeTables({ tables, databases }, { ...purge, isDry: false })
  for (const copy of copies)
    expect(report).toContainEqual(
      expect.objectContaining({ copy, done: 'removed the rows of 1 deleted key', left: null }),
    )
  const kept = { query: `SELECT api_key FROM ${databases.base}.api_key_requests` }
  expect(await tables.rows(kept)).toEqual([{ api_key: revoked }])
  expect([await shown(deleted), await shown(revoked)]).toEqual([0, 1])
  const again = await purgeTables({ tables, databases }, { ...purge, isDry: false })
  for (const copy of copies)
    expect(again).toContainEqual(expect.objectContaining({ copy, done: 'no deleted key' }))
})
