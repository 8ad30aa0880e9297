/** The figures of a campaign, exact to the last digit. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencyCodes, currencyDigits } from '../../../../contracts/events/currencies.ts'
import {
  campaignEvent,
  pledgeEvent,
  pledgeTombstone,
  sampleReward,
} from '../../../support/events/sample-events.ts'
import { anyDelivery, openGiven, type Projected, viewsShow } from '../../../support/projector/given.ts'
import { percentText } from '../../../support/projector/model-tables.ts'

const longMax = 2n ** 63n - 1n

interface Figures {
  goal: string
  pledged: string
  platform: string
  percent: string
  backers: number
  pledges: number
}

describe('a campaign’s figures', () => {
  const given = openGiven()

  test('are in major units of their currency, for any number of digits', async () => {
    const amounts = { goal_amount_minor: 123_456, currency: 'EUR' }
    const projected = await given(
      ['JPY', 'EUR', 'KWD', 'CLF'].flatMap(currency => [
        campaignEvent({ campaign_id: currency, ...amounts, currency }),
        pledgeEvent({
          campaign_id: currency,
          pledge_id: 'p',
          amount_minor: 1_000_001,
          platform_amount_minor: 7,
        }),
      ]),
    )
    expect(await figures(projected)).toMatchObject({
      JPY: { goal: '123456', pledged: '1000001', platform: '0.07' },
      EUR: { goal: '1234.56', pledged: '10000.01', platform: '0.07' },
      KWD: { goal: '123.456', pledged: '1000.001', platform: '0.07' },
      CLF: { goal: '12.3456', pledged: '100.0001', platform: '0.07' },
    })
  })

  test.each([
    [0, '12345'],
    [3, '12.345'],
    [4, '1.2345'],
  ])('follow the platform’s currency: %i digits', async (digits, platform) => {
    const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', platform_amount_minor: 12_345 })
    await given([campaignEvent({ campaign_id: 'a' }), pledge], { platformDigits: digits }).then(
      async projected => expect(await figures(projected)).toMatchObject({ a: { platform } }),
    )
  })

  test('stay exact beyond 64 bits', async () => {
    const most = { amount_minor: longMax, platform_amount_minor: longMax }
    const pledges = ['p', 'q', 'r'].map(pledge_id =>
      pledgeEvent({ campaign_id: 'a', pledge_id, version: longMax, ...most }),
    )
    const projected = await given([
      campaignEvent({ campaign_id: 'a', currency: 'CLF', goal_amount_minor: 1 }),
      campaignEvent({ campaign_id: 'b', currency: 'JPY', goal_amount_minor: longMax }),
      pledgeEvent({ campaign_id: 'b', pledge_id: 'p', ...most }),
      ...pledges,
    ])
    expect(await figures(projected)).toEqual({
      a: {
        goal: '0.0001',
        pledged: '2767011611056432.7421',
        platform: '276701161105643274.21',
        percent: '2767011611056432742100',
        backers: 3,
        pledges: 3,
      },
      b: {
        goal: '9223372036854775807',
        pledged: '9223372036854775807',
        platform: '92233720368547758.07',
        percent: '100',
        backers: 1,
        pledges: 1,
      },
    })
    expect((await projected.views()).totals).toMatchObject([{ total_raised: '368934881474191032.28' }])
  })

  test('round a percentage half up to hundredths, and a goal of 0 is 0 %', async () => {
    const cases: [id: string, pledged: number, goal: number, percent: string][] = [
      ['third', 1, 3, '33.33'],
      ['two thirds', 2, 3, '66.67'],
      ['just half', 1, 20_000, '0.01'],
      ['below half', 1, 20_001, '0'],
      ['half above', 201, 20_000, '1.01'],
      ['whole', 3, 3, '100'],
      ['much', 1_000_001, 3, '33333366.67'],
      ['no goal', 5, 0, '0'],
      ['nothing', 0, 7, '0'],
    ]
    const projected = await given(
      cases.flatMap(([campaign_id, amount_minor, goal_amount_minor]) => [
        campaignEvent({ campaign_id, goal_amount_minor }),
        pledgeEvent({ campaign_id, pledge_id: 'p', amount_minor }),
      ]),
    )
    const percents = Object.entries(await figures(projected)).map(([id, { percent }]) => [id, percent])
    expect(Object.fromEntries(percents)).toEqual(
      Object.fromEntries(cases.map(([id, , , percent]) => [id, percent])),
    )
  })

  test('are exact for any amounts and currencies', async () => {
    const long = fc.oneof(
      fc.bigInt({ min: 0n, max: longMax }),
      fc.bigInt({ min: 0n, max: 300n }),
      fc.constantFrom(0n, 1n, 2n ** 53n, 2n ** 53n + 1n, longMax - 1n, longMax),
    )
    const campaigns = fc.array(
      fc.record({
        currency: fc.constantFrom(...currencyCodes),
        goal: long,
        amounts: fc.array(fc.tuple(long, long, fc.nat(3)), { maxLength: 5 }),
      }),
      { minLength: 150, maxLength: 150 },
    )
    await fc.assert(
      fc.asyncProperty(campaigns, async sample => {
        const events = sample.flatMap(({ currency, goal, amounts }, index) => {
          const campaign_id = `c${index}`
          return [
            campaignEvent({ campaign_id, currency, goal_amount_minor: goal }),
            ...amounts.map(([amount_minor, platform_amount_minor, backer], n) =>
              pledgeEvent({
                campaign_id,
                pledge_id: `p${n}`,
                backer_id: `b${backer}`,
                amount_minor,
                platform_amount_minor,
              }),
            ),
          ]
        })
        await given(events).then(viewsShow(events))
      }),
      { numRuns: 3, endOnFailure: true },
    )
  })

  test('hold amounts of every currency that an event may name', async () => {
    const currencies = currencyCodes.map(currency => campaignEvent({ campaign_id: currency, currency }))
    const projected = await given(currencies)
    const rows = await figures(projected)
    for (const code of currencyCodes) {
      const goal = 100_000 / 10 ** (currencyDigits(code) ?? Number.NaN)
      expect(Number(rows[code]?.goal), code).toBe(goal)
    }
  })

  test('count a backer once, over pledges of one campaign and over campaigns', async () => {
    const pledge = (campaign_id: string, pledge_id: string, backer_id: string) =>
      pledgeEvent({ campaign_id, pledge_id, backer_id })
    const projected = await given([
      ...['a', 'b', 'hidden'].map(id =>
        campaignEvent({ campaign_id: id, status: id === 'hidden' ? 'DRAFT' : 'LIVE' }),
      ),
      pledge('a', 'p1', 'x'),
      pledge('a', 'p2', 'x'),
      pledge('a', 'p3', 'y'),
      pledge('b', 'p1', 'x'),
      pledge('b', 'p2', 'z'),
      pledge('hidden', 'p1', 'nobody else'),
    ])
    expect(await figures(projected)).toMatchObject({
      a: { backers: 2, pledges: 3 },
      b: { backers: 2, pledges: 2 },
    })
    const { totals } = await projected.views()
    expect(totals).toMatchObject([{ total_backers: 3, total_pledges: 5 }])
  })

  test('have only pledges that count, by their latest state', async () => {
    const statuses = ['UNKNOWN', 'PENDING', 'ACTIVE', 'COLLECTED', 'CANCELLED', 'REFUNDED', 'FAILED'] as const
    const events = [
      campaignEvent({ campaign_id: 'a', goal_amount_minor: 20_000 }),
      ...statuses.map(status => pledgeEvent({ campaign_id: 'a', pledge_id: status, status })),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'ended', version: 2, status: 'REFUNDED' }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'ended', version: 1 }),
      pledgeEvent({ campaign_id: 'a', pledge_id: 'deleted' }),
      pledgeTombstone('a', 'deleted'),
    ]
    for (const delivery of anyDelivery) {
      const projected = await given(events, delivery)
      expect(await figures(projected)).toMatchObject({
        a: { pledged: '20', percent: '10', backers: 2, pledges: 2 },
      })
    }
  })

  test('include pledges that came before their campaign', async () => {
    await given([pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })])
      .when([campaignEvent({ campaign_id: 'a' })])
      .then(async projected => {
        expect(await figures(projected)).toMatchObject({ a: { pledged: '10', pledges: 1 } })
      })
  })

  test('say how many of a tier are left: never below 0, null if there is no limit', async () => {
    const rewards = [
      sampleReward({ reward_id: 'oversold', quantity_available: 1 }),
      sampleReward({ reward_id: 'some left', quantity_available: 5 }),
      sampleReward({ reward_id: 'untouched', quantity_available: longMax }),
      sampleReward({ reward_id: 'unlimited' }),
      sampleReward({ reward_id: 'none made', quantity_available: 0 }),
    ]
    const chosen = ['oversold', 'oversold', 'some left', 'unlimited', 'a tier that is gone', null]
    const projected = await given([
      campaignEvent({ campaign_id: 'a', rewards }),
      ...chosen.map((reward_id, n) => pledgeEvent({ campaign_id: 'a', pledge_id: `p${n}`, reward_id })),
      pledgeEvent({
        campaign_id: 'a',
        pledge_id: 'does not count',
        reward_id: 'unlimited',
        status: 'PENDING',
      }),
      pledgeEvent({ campaign_id: 'b', pledge_id: 'of another campaign', reward_id: 'unlimited' }),
    ])
    expect(await tiers(projected)).toEqual([
      { id: 'none made', available: '0', claimed: 0, remaining: '0' },
      { id: 'oversold', available: '1', claimed: 2, remaining: '0' },
      { id: 'some left', available: '5', claimed: 1, remaining: '4' },
      { id: 'unlimited', available: null, claimed: 1, remaining: null },
      { id: 'untouched', available: String(longMax), claimed: 0, remaining: String(longMax) },
    ])
    expect(await figures(projected)).toMatchObject({ a: { pledges: 6 } })
  })

  test('the percentage of the tests is the rounded quotient', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: longMax }), fc.bigInt({ min: 1n, max: longMax }), (p, g) => {
        const hundredths = BigInt(
          percentText(p, g).replace(/^(\d+)\.?(\d*)$/, (_, w, f) => w + f.padEnd(2, '0')),
        )
        // |10000 p/g - result| <= 1/2, and a half goes up.
        const twiceError = 2n * (hundredths * g - 10_000n * p)
        expect(twiceError <= g && twiceError > -g).toBe(true)
      }),
    )
  })
})

async function figures({ tables, databases }: Projected): Promise<Record<string, Figures>> {
  const rows = await tables.rows<{ id: string } & Figures>({
    query: `SELECT campaign_id AS id, toString(goal_amount) AS goal, toString(pledged_amount) AS pledged,
              toString(pledged_platform_amount) AS platform, toString(percent_funded) AS percent,
              backer_count AS backers, pledge_count AS pledges
            FROM ${databases.views}.campaigns`,
  })
  return Object.fromEntries(rows.map(({ id, ...rest }) => [id, rest]))
}

async function tiers({ tables, databases }: Projected): Promise<unknown[]> {
  return tables.rows({
    query: `SELECT reward_id AS id, toString(quantity_available) AS available, quantity_claimed AS claimed,
              toString(quantity_remaining) AS remaining FROM ${databases.views}.rewards ORDER BY reward_id`,
  })
}
