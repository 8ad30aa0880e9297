/** `pledgeview explain`: what is shown of a campaign, or why nothing is, agrees with the ledger and the fold. */
import { PassThrough } from 'node:stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { print, whyOf } from '../../../services/commands/explain/explain.ts'
import { explainCampaign } from '../../../services/commands/explain/read.ts'
import { settleRejects } from '../../../services/tables/rejects.ts'
import {
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../../support/events/sample-events.ts'
import { createTestFoldWorker } from '../../support/projector/model-tables.ts'
import { storeAt } from '../../support/projector/reject-filters.ts'
import { useFreshModel } from '../../support/projector/use-model-tables.ts'

describe('explain', () => {
  const model = useFreshModel()
  const otherShard = useFreshModel()
  let fold: () => Promise<unknown>

  beforeEach(async () => {
    const { foldWorker } = createTestFoldWorker(model.tables, model.databases)
    await foldWorker.acquireLeadership()
    fold = () => foldWorker.fold()
  })

  const explain = (name: string) => explainCampaign(name, [model], model)
  const why = async (name: string) => whyOf(await explain(name))

  const campaign = campaignEvent({
    campaign_id: 'c1',
    slug: 'lanterns',
    currency: 'KWD',
    rewards: [sampleReward({ reward_id: 'r1' })],
  })
  const world = [
    campaign,
    pledgeEvent({
      campaign_id: 'c1',
      pledge_id: 'p1',
      backer_id: 'b1',
      amount_minor: 1_500,
      reward_id: 'r1',
    }),
    pledgeEvent({ campaign_id: 'c1', pledge_id: 'p2', backer_id: 'b1', amount_minor: 2_000 }),
    pledgeEvent({ campaign_id: 'c1', pledge_id: 'p3', status: 'REFUNDED' }),
    pledgeTombstone('c1', 'p4'),
    campaignEvent({ campaign_id: 'other' }),
  ]

  test('tells of fields that the ledger has and a projector of an earlier version did not fold', async () => {
    await model.ingest(world)
    await fold()
    const { read } = model.databases
    await model.tables.run({
      query: `ALTER TABLE ${read}.campaigns UPDATE subtitle = 'none' WHERE true SETTINGS mutations_sync = 1`,
    })
    const [shown] = await why('c1')
    expect(shown).toMatch(/^The ledger has fields that are not shown: .*`pledgeview rebuild`/)
    // In quarantine, it is the fold that waits.
    const quarantine = { since: '2026-01-01T00:00:00.000Z', failures: 1, reason: 'it took too long' }
    const [ofQuarantined] = whyOf({ ...(await explain('c1')), quarantine })
    expect(ofQuarantined).toBe('The ledger has changed since the fold that wrote what is shown.')
    await model.ingest([campaign])
    expect(await why('c1')).toEqual([
      'The ledger has changed since the fold that wrote what is shown.',
      ...(await why('c1')).slice(1),
    ])
  })

  test('leads from the shown number to the fold, the ledger and the batch, in the major units of the currency, and tells nothing of a single backer or pledge', async () => {
    await model.ingest(world)
    await fold()
    const found = await explain('c1')
    expect(found).toMatchObject({
      shown: {
        slug: 'lanterns',
        status: 'LIVE',
        pledges: 2,
        backers: 1,
        tiers: [{ reward_id: 'r1', pledges: 1 }],
      },
      ledger: { state: 'public' },
      pledges: { pledges: 2, backers: 1, not_counting: 1, deleted: 1 },
      unfolded_batches: 0,
      quarantine: null,
      batches: [{ sequence: 1, events: world.length }],
    })
    expect(Number(found.shown?.amount)).toBe(3.5)
    expect(Number(found.pledges.amount)).toBe(3.5)
    expect(found.pledges.by_tier).toEqual([
      { reward_id: '', pledges: 1 },
      { reward_id: 'r1', pledges: 1 },
    ])
    expect(found.shown?.fold.epoch).toBeGreaterThan(0)
    expect(whyOf(found)[0]).toBe('What is shown is what the ledger says.')
    expect(await explain('lanterns')).toEqual(found)
    for (const secret of ['p1', 'p2', 'p3', 'b1', 'hash']) expect(JSON.stringify(found)).not.toContain(secret)
  })

  test('says what is on its way, and that what is shown is older', async () => {
    await model.ingest(world)
    expect(await why('c1')).toEqual([
      'It is public, and was not folded yet.',
      'Batches with events of it that are read, and wait for the fold: 1.',
      'Pledges that do not count, because they are neither ACTIVE nor COLLECTED: 1.',
    ])
    await fold()
    await model.ingest([pledgeEvent({ campaign_id: 'c1', pledge_id: 'p5' })])
    expect((await why('c1')).slice(0, 2)).toEqual([
      'The ledger has changed since the fold that wrote what is shown.',
      'Batches with events of it that are read, and wait for the fold: 1.',
    ])
  })

  test('says why a campaign is not shown: it was never read, is not public, or was deleted', async () => {
    await model.ingest([campaignEvent({ campaign_id: 'draft', status: 'DRAFT' }), campaign])
    await fold()
    await model.ingest([pledgeEvent({ campaign_id: 'never-came', pledge_id: 'p1' })])
    expect((await why('nobody'))[0]).toContain('No event of this campaign was read. `pledgeview status`')
    expect((await why('never-came'))[0]).toContain('Pledges of it that wait for one: 1.')
    expect((await why('draft'))[0]).toContain('not public')
    await model.ingest([campaignTombstone('c1')])
    expect((await why('c1'))[0]).toBe('A tombstone deleted it, for good. It is shown until the next fold.')
    await fold()
    expect(await explain('c1')).toMatchObject({ shown: null, ledger: { state: 'deleted' } })
    expect(await why('c1')).toEqual(['A tombstone deleted it, for good.'])
  })

  test('tells no amount of pledges while the currency of the campaign is not known', async () => {
    const draft = { campaign_id: 'c1', status: 'DRAFT', currency: 'KWD' } as const
    await model.ingest([campaignEvent(draft), ...world.filter(event => event !== campaign)])
    await model.ingest([pledgeEvent({ campaign_id: 'never-came', pledge_id: 'p1' })])
    expect((await explain('c1')).pledges).toMatchObject({ pledges: 2, amount: null })
    expect((await explain('never-came')).pledges).toMatchObject({ pledges: 1, amount: null })
    const stdout = new PassThrough()
    print(await explain('c1'), [], { stdout })
    expect(String(stdout.read())).toMatch(/2 pledges of 1 backers$/m)
  })

  test('finds the pledges of a campaign that was never read on whichever shard they are', async () => {
    await model.ingest([
      pledgeEvent({ campaign_id: 'counting', pledge_id: 'p1' }),
      pledgeEvent({ campaign_id: 'refunded', pledge_id: 'p1', status: 'REFUNDED' }),
      pledgeTombstone('deleted', 'p1'),
    ])
    for (const shards of [
      [model, otherShard],
      [otherShard, model],
    ])
      for (const [id, pledges] of Object.entries({
        counting: { pledges: 1, not_counting: 0, deleted: 0 },
        refunded: { pledges: 0, not_counting: 1, deleted: 0 },
        deleted: { pledges: 0, not_counting: 0, deleted: 1 },
      }))
        expect(await explainCampaign(id, shards, model)).toMatchObject({ pledges, unfolded_batches: 1 })
  })

  test('counts the refused records of a campaign and its pledges until a retry has settled them', async () => {
    const { tables, databases } = model
    const refused = [campaign, pledgeEvent({ campaign_id: 'c1', pledge_id: 'p1' })].map((event, offset) => ({
      record: { ...newRecordOf(event), partition: 0, offset, appendedAt: 1_000 },
      reason: 'not wanted',
      rejectedAt: Date.now() + offset,
    }))
    await storeAt(tables, databases, refused)
    expect(await explain('c1')).toMatchObject({ rejects: 2, latest_reject: 'pledges/0/1' })
    await settleRejects(
      tables,
      databases,
      refused.slice(1).map(({ record }) => record),
    )
    expect(await explain('c1')).toMatchObject({ rejects: 1, latest_reject: 'campaigns/0/0' })
  })
})
