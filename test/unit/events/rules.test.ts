import currencyTable from 'currency-codes'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencyCodes, currencyDigits } from '../../../contracts/events/currencies.ts'
import { faultOf, pledgeIdsOf, rewardsMax } from '../../../contracts/events/rules.ts'
import { campaignEvent, sampleReward } from '../../support/sample-events.ts'
import { changeEvent } from './event-arbitraries.ts'

describe('the rules of events', () => {
  test('let through every event that keeps them', () => {
    fc.assert(fc.property(changeEvent, event => faultOf(event) === undefined))
  })

  test('bound the tiers of a campaign, so that one row stays small', () => {
    const withTiers = (count: number) =>
      campaignEvent({
        campaign_id: 'c',
        rewards: Array.from({ length: count }, (_, n) => sampleReward({ reward_id: `r${n}` })),
      })
    expect(faultOf(withTiers(rewardsMax))).toBeUndefined()
    expect(faultOf(withTiers(rewardsMax + 1))).toEqual({
      field: 'rewards',
      reason: 'has 1001 tiers, more than 1000',
    })
  })

  test('take a pledge’s key apart into the ids that it was made of', () => {
    expect(pledgeIdsOf('c_1/p_1')).toEqual({ campaign_id: 'c_1', pledge_id: 'p_1' })
    for (const key of ['c_1', '/p_1', 'c_1/', 'c_1/p/1', '/', ''])
      expect(pledgeIdsOf(key), key).toBeUndefined()
  })
})

describe('currencies', () => {
  test('have the digits of ISO 4217’s own list', () => {
    const listed = new Map(currencyTable.data.map(({ code, digits }) => [code, digits]))
    const known = currencyCodes.filter(code => listed.has(code))
    expect(known.length).toBeGreaterThan(150)
    for (const code of known) expect(currencyDigits(code), code).toBe(listed.get(code))
  })

  test('are all there that are money', () => {
    // Metals, drawing rights, bond units, and the codes for testing and for none: they have no smallest unit.
    const withoutUnit = /^X(AG|AU|BA|BB|BC|BD|DR|PD|PT|SU|TS|UA|XX)$/
    const missing = currencyTable.data.map(({ code }) => code).filter(code => !currencyCodes.includes(code))
    expect(missing.filter(code => !withoutUnit.test(code))).toEqual([])
  })
})
