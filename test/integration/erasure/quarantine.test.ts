/** What a purge says of campaigns in quarantine. */
import { expect, test } from 'vitest'
import { purgeTables } from '../../../services/erasure/tables.ts'
import { recordQuarantineStatement } from '../../../services/projector/fold/quarantine.ts'
import { sleep } from '../../../services/runtime/sleep.ts'
import { campaignEvent, campaignTombstone } from '../../support/events/sample-events.ts'
import { createIngest } from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

const model = useModelTables()

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

  const purge = {
    isDry: true,
    removesRejects: false,
    msMax: 60_000,
    now: Date.now,
    monotonicMs: () => performance.now(),
    sleep,
  }
  const copies = await purgeTables({ tables, databases }, purge)
  const named = copies.filter(({ copy }) => copy.startsWith('campaign '))
  expect(named.map(({ copy, isReached }) => [copy, isReached])).toEqual([
    ['campaign failing', false],
    ['campaign folded alone', true],
  ])
  await model.drop(databases)
})
