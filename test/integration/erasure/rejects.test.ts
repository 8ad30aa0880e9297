/** Rejects of deleted entities, for an erasure request. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Topic } from '../../../contracts/events/event.ts'
import { purgeTables } from '../../../services/erasure/tables.ts'
import { sleep } from '../../../services/runtime/sleep.ts'
import { filesWith } from '../../support/events/find-texts.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/events/sample-events.ts'
import { createIngest, type ModelTables, openModelTables } from '../../support/projector/model-tables.ts'
import { keptRejects, storeAt } from '../../support/projector/reject-filters.ts'

let model: ModelTables
beforeAll(async () => {
  model = await openModelTables()
})
afterAll(() => model.dispose())

const copy = 'table rejects'
const purge = {
  ...{ isDry: false, removesRejects: false, msMax: 60_000 },
  ...{ now: Date.now, monotonicMs: () => performance.now(), sleep },
}

test('a purge removes the rejects of deleted entities from disk, leaves those of others, and removes all if asked', {
  timeout: 120_000,
}, async () => {
  const { tables, clickHouse } = model
  const databases = await model.freshDatabases()
  const quoted = "it's \\ deleted"
  await createIngest(
    tables,
    databases,
  )([
    ...['kept', 'gone', quoted].map(campaign_id => campaignEvent({ campaign_id })),
    pledgeEvent({ campaign_id: 'kept', pledge_id: 'p1' }),
    ...[campaignTombstone('gone'), campaignTombstone(quoted), pledgeTombstone('kept', 'p2')],
    apiKeyEvent({ key: 'used', account_id: 'a' }),
    { type: 'api-key', key: 'unused', data: null },
  ])
  const deleted: [Topic, string | null][] = [
    ['campaigns', 'gone'],
    ['campaigns', quoted],
    ['pledges', 'kept/p2'],
    // Nothing shows a pledge of a deleted campaign any more.
    ['pledges', 'gone/p9'],
    ['api-keys', 'unused'],
  ]
  const others: [Topic, string | null][] = [
    ['campaigns', 'kept'],
    ['campaigns', 'unused'],
    ['pledges', 'kept/p1'],
    ['pledges', 'gone'],
    ['api-keys', 'gone'],
    ['pledges', null],
    ['pledges', '\u0000/'],
  ]
  const rejectedAt = Date.now()
  await storeAt(
    tables,
    databases,
    [...deleted, ...others].map(([topic, key], offset) => ({
      record: {
        ...{ topic, partition: 0, offset, appendedAt: 1 },
        ...{ key: key === null ? null : Buffer.from(key), value: Buffer.from(`SECRET of ${offset}.`) },
      },
      reason: 'no event',
      rejectedAt,
    })),
  )
  const left = async () => (await keptRejects(tables, databases)).map(({ record }) => record.offset)
  // A pledge whose key is no more than the id of a deleted campaign is of that campaign, too.
  const expected = others.flatMap(([topic, key], index) =>
    topic === 'pledges' && key === 'gone' ? [] : [deleted.length + index],
  )
  const run = async (options: Partial<typeof purge>) =>
    (await purgeTables({ tables, databases }, { ...purge, ...options })).find(one => one.copy === copy)

  expect(await run({ isDry: true })).toMatchObject({
    done: 'removes 6 rows',
    left: '6 whose entity is not deleted: see rejects list; --rejects removes them',
    isReached: true,
  })
  expect(await left()).toHaveLength(12)
  expect(await run({})).toMatchObject({ done: 'removed 6 rows', isReached: true })
  expect(await left()).toEqual(expected)
  expect(filesWith(clickHouse.directory, ['SECRET of 0.'])).toEqual([])
  expect(await run({ removesRejects: true })).toMatchObject({ done: 'removed 6 rows', left: null })
  expect(await left()).toEqual([])
  expect(await run({})).toMatchObject({ done: 'removed 0 rows', left: null })
})
