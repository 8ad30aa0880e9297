/** The demo platform's money: currencies, invented and constant exchange rates, and realistic prices. */
import { currencyDigits } from '../../contracts/events/currencies.ts'

export const demoCurrencies = ['USD', 'EUR', 'GBP', 'CAD', 'AUD', 'SEK', 'JPY', 'KWD'] as const
export type DemoCurrency = (typeof demoCurrencies)[number]

/** The currency of `platform_amount_minor` in every demo pledge. */
export const platformCurrency: DemoCurrency = 'USD'

const digitsOf = (currency: DemoCurrency): number => currencyDigits(currency) ?? 2

/** Major units of the platform's currency for 1,000 major units of each currency. */
// biome-ignore format: one line of rates reads better than eight.
const platformFor1000: Readonly<Record<DemoCurrency, number>> =
  { USD: 1000, EUR: 1090, GBP: 1270, CAD: 730, AUD: 660, SEK: 96, JPY: 7, KWD: 3260 }

/** An amount in the platform's smallest unit, rounded to the nearest; both are integers. */
export function toPlatformMinor(amountMinor: number, currency: DemoCurrency): number {
  const numerator = amountMinor * platformFor1000[currency] * 10 ** digitsOf(platformCurrency)
  const denominator = 1000 * 10 ** digitsOf(currency)
  return Math.floor((2 * numerator + denominator) / (2 * denominator))
}

/** A realistic price near this many units of the platform's currency: two digits, then zeros. */
export function priceMinor(platformMajor: number, currency: DemoCurrency): number {
  const exact = (platformMajor * 1000 * 10 ** digitsOf(currency)) / platformFor1000[currency]
  const step = 10 ** Math.max(0, Math.floor(Math.log10(exact)) - 1)
  return Math.max(1, Math.round(exact / step) * step)
}

const goalSteps = [10, 12, 15, 18, 20, 25, 30, 35, 40, 50, 60, 75, 80, 90, 100]

/** The largest realistic goal that is not above the amount (1 at least). */
export function goalAtMost(amountMinor: number): number {
  const scale = goalScale(amountMinor)
  const step = goalSteps.findLast(candidate => candidate * scale <= amountMinor) ?? 0
  return Math.max(1, Math.floor(step * scale))
}

/** The smallest realistic goal that is above the amount. */
export function goalAbove(amountMinor: number): number {
  const scale = goalScale(amountMinor)
  const step = goalSteps.find(candidate => candidate * scale > amountMinor) ?? 100
  return Math.max(1, Math.ceil(step * scale))
}

// Puts the amount between 10 and 100 steps; below 10 smallest units the steps are fractions, which the callers round.
function goalScale(amountMinor: number): number {
  return 10 ** (Math.floor(Math.log10(Math.max(1, amountMinor))) - 1)
}
