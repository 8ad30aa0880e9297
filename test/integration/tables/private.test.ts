/** What only the program reads of its tables: whose they are, and which versions the ledger has. */
import { expect, test } from 'vitest'
import { writeRow } from '../../../services/tables/generation-log.ts'
import { entityOf, ledgerVersions } from '../../../services/tables/ledger-versions.ts'
import { holdTablesIdentity, readTablesId } from '../../../services/tables/schema/identity.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/events/sample-events.ts'
import { createIngest } from '../../support/projector/model-tables.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

const model = useModelTables()

// A retry of rejects, and an append, leave out what is older.
test('the ledger tells the highest version of each entity that is asked for, deletions included, and of no other', async () => {
  const databases = await model.freshDatabases()
  const ingest = createIngest(model.tables, databases)
  const large = 2n ** 62n + 1n
  const known = [
    campaignEvent({ campaign_id: "it's", version: 7 }),
    campaignEvent({ campaign_id: 'draft', version: 3, status: 'DRAFT' }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: large }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'q', version: 2 }),
    pledgeEvent({ campaign_id: 'b', pledge_id: 'p', version: 9 }),
    pledgeEvent({ campaign_id: 'b', pledge_id: 'r', version: 1 }),
    apiKeyEvent({ key: 'k', account_id: 'acc', version: 4 }),
  ]
  await ingest(known)
  await ingest([
    campaignEvent({ campaign_id: "it's", version: 5 }),
    campaignTombstone('gone'),
    pledgeTombstone('a', 'r'),
  ])
  const asked = [
    campaignEvent({ campaign_id: "it's" }),
    campaignEvent({ campaign_id: 'draft' }),
    campaignEvent({ campaign_id: 'gone' }),
    campaignEvent({ campaign_id: 'new' }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'p' }),
    pledgeEvent({ campaign_id: 'b', pledge_id: 'p' }),
    pledgeEvent({ campaign_id: 'a', pledge_id: 'r' }),
    apiKeyEvent({ key: 'k', account_id: 'acc' }),
  ]
  const versions = await ledgerVersions(model.tables, databases, asked)
  const deleted = 2n ** 64n - 1n
  expect(Object.fromEntries(versions)).toEqual({
    "campaigns/it's": 7n,
    'campaigns/draft': 3n,
    'campaigns/gone': deleted,
    'pledges/a/p': large,
    'pledges/b/p': 9n,
    'pledges/a/r': deleted,
    'api-keys/k': 4n,
  })
  expect(entityOf({ type: 'pledge', key: 'a/p' })).toBe('pledges/a/p')
  expect(await ledgerVersions(model.tables, databases, [])).toEqual(new Map())
})

test('the identity of tables is that of the first writer: another secret or currency is refused, and the secret is not kept', async () => {
  const databases = await model.freshDatabases()
  const own = { PLEDGEVIEW_BACKER_KEY: 'a'.repeat(64), PLEDGEVIEW_PLATFORM_CURRENCY: 'EUR' }
  await holdTablesIdentity(model.tables, databases, own)
  await holdTablesIdentity(model.tables, databases, own)
  for (const other of [{ PLEDGEVIEW_BACKER_KEY: 'b'.repeat(64) }, { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' }]) {
    await expect(holdTablesIdentity(model.tables, databases, { ...own, ...other })).rejects.toThrow(
      `${Object.keys(other)[0]} differs`,
    )
  }
  const rows = await model.tables.rows({ query: `SELECT * FROM ${databases.base}.identity` })
  expect(JSON.stringify(rows)).not.toContain('a'.repeat(64))
})

test('tables have an id from their first generation on, which a rebuild does not change and other tables do not share', async () => {
  const databases = await model.freshDatabases()
  const id = await readTablesId(model.tables, databases)
  expect(Number(id)).toBeGreaterThan(Date.UTC(2026))
  const log = { tables: model.tables, base: databases.base }
  await writeRow(log, { kind: 'registered', generation: 2 })
  expect(await readTablesId(model.tables, databases)).toBe(id)
  expect(await readTablesId(model.tables, await model.freshDatabases())).not.toBe(id)
})
