/**
 * The figures of a campaign, exact to the last digit. That they follow from the latest events, whatever their order, is in
 * properties.test.ts.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencyCodes } from '../../../../contracts/events/currencies.ts'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import { foldCampaignsStatement } from '../../../../services/projector/fold/fold-statements.ts'
import { readModelOf } from '../../../support/events/model.ts'
import { campaignEvent, pledgeEvent, sampleReward } from '../../../support/events/sample-events.ts'
import { column, stepOf } from '../../../support/projector/fold-records.ts'
import { createTestFoldWorker, expectedReading } from '../../../support/projector/model-tables.ts'
import { useFreshModel } from '../../../support/projector/use-model-tables.ts'

const longMax = 2n ** 63n - 1n
const memoryBytesMax = 400_000_000
const model = useFreshModel()
const notCounting = ['UNKNOWN', 'PENDING', 'CANCELLED', 'REFUNDED', 'FAILED'] as const

describe('a campaign’s figures', () => {
  test.each([
    ['JPY', '12345'],
    ['KWD', '12.345'],
    ['CLF', '1.2345'],
  ])('follow the digits of the platform’s currency: %s', async (currency, platform) => {
    const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', platform_amount_minor: 12_345 })
    await model.project([campaignEvent({ campaign_id: 'a' }), pledge], { currency })
    const query = `SELECT toString(pledged_platform_amount) AS value FROM ${model.databases.views}.campaigns`
    expect(await column(model.tables, query)).toEqual([platform])
  })

  test('are exact for any amounts, currencies, states of pledges, backers and tiers, and round a percentage half up', async () => {
    const long = fc.oneof(
      fc.bigInt({ min: 0n, max: longMax }),
      fc.bigInt({ min: 0n, max: 300n }),
      fc.constantFrom(0n, 1n, 2n ** 53n, 2n ** 53n + 1n, longMax - 1n, longMax),
    )
    const pledge = fc.record({
      amount_minor: long,
      platform_amount_minor: long,
      backer_id: fc.constantFrom('x', 'y', 'z'),
      status: fc.constantFrom('ACTIVE', 'COLLECTED', 'ACTIVE', 'COLLECTED', 'ACTIVE', ...notCounting),
      reward_id: fc.constantFrom('r', 'a tier that is gone', null),
    })
    const campaigns = fc.array(
      fc.record({
        currency: fc.constantFrom(...currencyCodes),
        // Of 20,000 and 64, small amounts are halves of a hundredth; of 20,001 just less.
        goal: fc.oneof(long, fc.constantFrom(0n, 3n, 64n, 20_000n, 20_001n)),
        // So few that some are sold more often than they are there.
        quantity: fc.constantFrom(0, 1, 2, longMax, null),
        pledges: fc.array(pledge, { maxLength: 5 }),
      }),
      { minLength: 150, maxLength: 150 },
    )
    const all: ChangeEvent[] = []
    await fc.assert(
      fc.asyncProperty(campaigns, async sample => {
        const events = sample.flatMap(({ currency, goal, quantity, pledges }, index) => {
          const campaign_id = `${all.length}-${index}`
          const rewards = [
            sampleReward({ reward_id: 'unclaimed', quantity_available: quantity }),
            sampleReward({ reward_id: 'r', quantity_available: quantity }),
          ]
          return [
            campaignEvent({ campaign_id, currency, goal_amount_minor: goal, rewards }),
            ...pledges.map((state, n) => pledgeEvent({ campaign_id, pledge_id: `p${n}`, ...state })),
          ]
        })
        all.push(...events)
        await model.project(events)
        expect(await model.views()).toEqual(expectedReading(readModelOf(all)))
      }),
      { numRuns: 3, endOnFailure: true },
    )
  })

  test('of tiers are counted within bounds of memory, with 1,000 tiers and 40,000 pledges that each name another', async () => {
    const { tables, databases, project } = model
    const tiers = 1_000
    const rewards = Array.from({ length: tiers }, (_, n) =>
      sampleReward({ reward_id: `r${n}`, quantity_available: 1 }),
    )
    await project([campaignEvent({ campaign_id: 'c', rewards })])
    // Every second tier is claimed once. The other pledges name tiers that the campaign does not have.
    await tables.run({
      query: `INSERT INTO ${databases.ledger}.pledge_ledger
              SELECT 'c', toString(number), 1, true, number, 100, 100, concat('r', toString(2 * number)), today()
              FROM numbers(40000) SETTINGS async_insert = 0`,
    })
    await project([pledgeEvent({ campaign_id: 'c', pledge_id: 'last', reward_id: 'r1' })])
    const term = await createTestFoldWorker(tables, databases).foldWorker.acquireLeadership()
    const step = { ...stepOf(9, term), memoryBytesMax }
    await tables.run(foldCampaignsStatement(databases, step, 'all'))
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
