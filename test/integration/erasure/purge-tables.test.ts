/** What a purge does with the tables, for an erasure request: the usage of deleted keys, and campaigns in quarantine. */
import { expect, test } from 'vitest'
import { purgeTables } from '../../../services/erasure/tables.ts'
import { totalOf } from '../../../services/portal/usage/usage-view.ts'
import { recordQuarantineStatement } from '../../../services/projector/fold/quarantine.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { campaignEvent, campaignTombstone } from '../../support/events/sample-events.ts'
import { createIngest } from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'
import { createTestRecorder, readUsage } from '../../support/query/usage.ts'

const model = useModelTables()
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
  await tables.run({
    query: `INSERT INTO ${databases.ledger}.fold_epochs (epoch, holder) SELECT 1, 'leader'`,
  })
  for (const [n, campaign] of ids.entries()) {
    const step = {
      term: { epoch: 1n, holder: 'leader' },
      foldId: (1n << 32n) + BigInt(n),
      pieces: 1,
      piece: 0,
      msMax: 60_000,
      memoryBytesMax: 2 ** 31,
    }
    const failures = campaign === 'folded alone' ? 0 : 2
    const isQuarantined = campaign !== 'released'
    await tables.run(
      recordQuarantineStatement(databases, step, { campaign, failures, reason: 'TIMEOUT', isQuarantined }),
    )
  }

  const planned = await purgeTables({ tables, databases }, { ...purge, isDry: true })
  const named = planned.filter(({ copy }) => copy.startsWith('campaign '))
  expect(named.map(({ copy, isReached }) => [copy, isReached])).toEqual([
    ['campaign failing', false],
    ['campaign folded alone', true],
  ])
  await model.drop(databases)
})

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
