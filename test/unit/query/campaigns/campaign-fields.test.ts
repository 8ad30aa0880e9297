import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { currencyDigits } from '../../../../contracts/events/currencies.ts'
import { presentStats } from '../../../../services/query/endpoints/stats.ts'
import { statsRow } from '../../../support/query/fake-tables.ts'

describe('the statistics', () => {
  it('are 0 if the divisor is 0', () => {
    const nothing = {
      ...{ ...statsRow, total_pledges: 0, projects_funded: 0, projects_failed: 0, projects_cancelled: 0 },
    }
    expect(presentStats(nothing, 'USD')).toMatchObject({ success_rate: 0, average_pledge: 0 })
  })

  // A number leaves the API as its shortest decimal text, which is what is checked here, digit by digit.
  it('round the average to the digits of the currency, and the rate to two, exactly and half up', () => {
    const currencies = fc.constantFrom('JPY', 'USD', 'KWD', 'CLF')
    const amountMinor = fc.bigInt({ min: 0n, max: 10n ** 15n - 1n })
    const count = fc.integer({ min: 1, max: 2_000_000_000 })
    fc.assert(
      fc.property(
        currencies,
        amountMinor,
        count,
        count,
        count,
        (currency, minor, pledges, funded, failed) => {
          const digits = currencyDigits(currency) ?? 0
          const row = {
            ...statsRow,
            total_raised: Number(minor) / 10 ** digits,
            total_pledges: pledges,
            projects_funded: funded,
            projects_failed: failed,
            projects_cancelled: 0,
          }
          const { average_pledge: average, success_rate: rate } = presentStats(row, currency)
          expect(inUnits(average, digits)).toBe(halfUp(minor, BigInt(pledges)))
          expect(inUnits(rate, 2)).toBe(halfUp(10_000n * BigInt(funded), BigInt(funded) + BigInt(failed)))
        },
      ),
    )
  })

  it('take the decimals of a large total as they were written, not as the binary fraction holds them', () => {
    // As a binary fraction, this total is 568964654693.06994..., a sixth of which is below the half.
    const row = { ...statsRow, total_raised: 568_964_654_693.07, total_pledges: 6 }
    expect(presentStats(row, 'USD').average_pledge).toBe(94_827_442_448.85)
  })

  it('keep a total that a number cannot hold exactly', () => {
    const row = { ...statsRow, total_raised: 1e30, total_pledges: 4 }
    expect(presentStats(row, 'USD').average_pledge).toBe(2.5e29)
  })
})

/** The text of the number as an integer of the last digit's units. Throws if it has more digits. */
function inUnits(value: number, digits: number): bigint {
  const [whole = '', decimals = ''] = String(value).split('.')
  if (decimals.length > digits) throw new Error(`${value} has more than ${digits} decimals`)
  return BigInt(whole + decimals.padEnd(digits, '0'))
}

function halfUp(dividend: bigint, divisor: bigint): bigint {
  const rest = dividend % divisor
  return dividend / divisor + (2n * rest >= divisor ? 1n : 0n)
}
