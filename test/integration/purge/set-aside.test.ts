/** What campaigns that are set aside leave behind, for an erasure request. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { foldCampaignsStatement } from '../../../services/projector/fold/fold-statements.ts'
import { recordSetAsideStatement } from '../../../services/projector/fold/set-aside-statements.ts'
import { purgeTables } from '../../../services/purge/tables.ts'
import { sleep } from '../../../services/shared/sleep.ts'
import { createIngest, type ModelTables, openModelTables } from '../../support/model-tables.ts'
import { campaignEvent } from '../../support/sample-events.ts'

let model: ModelTables
beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

test('a purge drops the staged row of a leader that was killed, keeps that of the leader, and names what it cannot reach', {
  timeout: 120_000,
}, async () => {
  const { tables } = model
  const databases = await model.freshDatabases()
  await createIngest(tables, databases)([campaignEvent({ campaign_id: 'heavy' })])
  const leads = (epoch: bigint) =>
    tables.run({
      query: `INSERT INTO ${databases.model}.fold_epochs (epoch, holder) SELECT ${epoch}, 'leader'`,
    })
  const stepOf = (epoch: bigint) => ({
    term: { epoch, holder: 'leader' },
    foldId: (epoch << 32n) + 1n,
    pieces: 1,
    piece: 0,
    msMax: 60_000,
    memoryBytesMax: 2 ** 31,
  })
  const alone = { touched: { campaign: 'heavy' }, platformDigits: 2, isStaged: true }
  for (const epoch of [1n, 2n]) {
    await leads(epoch)
    await tables.run(foldCampaignsStatement(databases, stepOf(epoch), alone))
  }
  const record = {
    campaign: 'heavy',
    isSetAside: true,
    isBehind: true,
    failures: 0,
    reason: 'TIMEOUT_EXCEEDED',
  }
  await tables.run(recordSetAsideStatement(databases, stepOf(2n), record))

  const purge = { msMax: 60_000, now: Date.now, monotonicMs: () => performance.now(), sleep }
  const plan = await purgeTables({ tables, databases }, { ...purge, isDry: true })
  expect(plan).toContainEqual(
    expect.objectContaining({ copy: 'table staged_campaigns', done: 'drops 1 row' }),
  )
  const copies = await purgeTables({ tables, databases }, { ...purge, isDry: false })
  expect(copies).toContainEqual(
    expect.objectContaining({ copy: 'table staged_campaigns', done: 'dropped 1 row', isReached: true }),
  )
  expect(copies).toContainEqual(expect.objectContaining({ copy: 'campaign heavy', isReached: false }))
  const parts = await tables.rows<{ partition: string }>({
    query: `SELECT DISTINCT partition FROM system.parts
            WHERE database = {model:String} AND table = 'staged_campaigns' AND rows > 0`,
    query_params: { model: databases.model },
  })
  expect(parts).toEqual([{ partition: String((2n << 32n) + 1n) }])
  await model.drop(databases)
})
