/** Reward tiers: what is claimed of each, at a cost that grows only in proportion to tiers and pledges. */
import { describe, expect, test } from 'vitest'
import { foldCampaignsStatement } from '../../../../services/projector/fold/fold-statements.ts'
import { campaignEvent, pledgeEvent, sampleReward } from '../../../support/events/sample-events.ts'
import { openGiven } from '../../../support/projector/given.ts'
import { createTestFoldWorker, platformDigits } from '../../../support/projector/model-tables.ts'

const memoryBytesMax = 400_000_000

describe('a campaign’s tiers', () => {
  const given = openGiven()

  test('are counted within bounds of memory, with 1,000 tiers and 40,000 pledges that each name another', async () => {
    const projected = await given([])
    const { tables, databases } = projected
    const tiers = 1_000
    const rewards = Array.from({ length: tiers }, (_, n) =>
      sampleReward({ reward_id: `r${n}`, quantity_available: 1 }),
    )
    await projected.project([campaignEvent({ campaign_id: 'c', rewards })])
    // Every second tier is claimed once. The other pledges name tiers that the campaign does not have.
    await tables.run({
      query: `INSERT INTO ${databases.ledger}.pledge_ledger
              SELECT 'c', toString(number), 1, true, number, 100, 100, concat('r', toString(2 * number)), today()
              FROM numbers(40000) SETTINGS async_insert = 0`,
    })
    await projected.project([pledgeEvent({ campaign_id: 'c', pledge_id: 'last', reward_id: 'r1' })])
    const term = await createTestFoldWorker(tables, databases).foldWorker.acquireLeadership()
    const step = {
      term,
      foldId: (term.epoch << 32n) + 9n,
      pieces: 1,
      piece: 0,
      msMax: 30_000,
      memoryBytesMax,
    }
    await tables.run(foldCampaignsStatement(databases, step, { touched: 'all', platformDigits }))
    expect(
      await tables.rows({
        query: `SELECT claimed, remaining, groupArray(reward_id)[2] AS second, count() AS tiers
                FROM (SELECT reward_id, quantity_claimed AS claimed, quantity_remaining AS remaining
                      FROM ${databases.views}.rewards)
                GROUP BY claimed, remaining ORDER BY claimed`,
      }),
    ).toEqual([
      { claimed: 0, remaining: 1, second: 'r5', tiers: 499 },
      { claimed: 1, remaining: 0, second: 'r1', tiers: 501 },
    ])
  })
})
