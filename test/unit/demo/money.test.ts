import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencyDigits } from '../../../contracts/events/currencies.ts'
import {
  demoCurrencies,
  goalAbove,
  goalAtMost,
  priceMinor,
  toPlatformMinor,
} from '../../../services/demo/money.ts'

describe('the demo’s money', () => {
  test('its currencies have none, two and three digits after the decimal point', () => {
    expect(new Set(demoCurrencies.map(currencyDigits))).toEqual(new Set([0, 2, 3]))
  })

  test('exchange respects the digits of both currencies', () => {
    expect(toPlatformMinor(1_234, 'USD')).toBe(1_234)
    expect(toPlatformMinor(1_000, 'JPY')).toBe(700) // 1,000 yen are 7 dollars
    expect(toPlatformMinor(10_000, 'KWD')).toBe(3_260) // 10 dinars are 32.60 dollars
    expect(toPlatformMinor(100, 'EUR')).toBe(109)
  })

  test('exchanged amounts are integers, rounded to the nearest', () => {
    fc.assert(
      fc.property(fc.nat(10 ** 9), fc.constantFrom(...demoCurrencies), (amountMinor, currency) => {
        const exchanged = toPlatformMinor(amountMinor, currency)
        expect(Number.isInteger(exchanged)).toBe(true)
        expect(Math.abs(exchanged - toPlatformMinor(amountMinor * 1_000, currency) / 1_000)).toBeLessThan(
          0.51,
        )
      }),
    )
  })

  test('prices are integers of at least 1 that have two digits and then zeros', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.01, max: 10_000, noNaN: true }),
        fc.constantFrom(...demoCurrencies),
        (platformMajor, currency) => {
          expect(String(priceMinor(platformMajor, currency))).toMatch(/^[1-9]\d?0*$/)
        },
      ),
    )
    expect(priceMinor(18.2, 'USD')).toBe(1_800)
    expect(priceMinor(18.2, 'JPY')).toBe(2_600)
    expect(priceMinor(18.2, 'KWD')).toBe(5_600)
  })

  test('a goal at most an amount never exceeds it, and a goal above always does, both by little', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 ** 11 }), amountMinor => {
        const atMost = goalAtMost(amountMinor)
        const above = goalAbove(amountMinor)
        expect(Number.isInteger(atMost) && Number.isInteger(above)).toBe(true)
        expect(atMost).toBeLessThanOrEqual(amountMinor)
        expect(above).toBeGreaterThan(amountMinor)
        expect(atMost).toBeGreaterThanOrEqual(Math.floor(amountMinor * 0.7))
        expect(above).toBeLessThanOrEqual(Math.ceil(amountMinor * 1.4) + 1)
      }),
    )
  })
})
