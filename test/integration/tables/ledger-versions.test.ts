/** Which versions the ledger has: a retry of rejects, and an append, leave out what is older. */
import { expect, test } from 'vitest'
import { entityOf, ledgerVersions } from '../../../services/tables/ledger-versions.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/events/sample-events.ts'
import { useFreshModel } from '../../support/projector/use-model-tables.ts'

const model = useFreshModel()

test('the ledger tells the highest version of each entity that is asked for, deletions included, and of no other', async () => {
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
  await model.ingest(known)
  await model.ingest([
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
  const versions = await ledgerVersions(model.tables, model.databases, asked)
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
  expect(await ledgerVersions(model.tables, model.databases, [])).toEqual(new Map())
})
